#include "plugin.hpp"

int main() {
  return plugin_answer() == 42 ? 0 : 1;
}
