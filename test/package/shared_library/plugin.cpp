#include "plugin.hpp"

#include "../demo.hpp"

int plugin_answer() {
  return ask();
}
