// What all the files beside this one have in common is right.
// expect: success
#include "../demo.hpp"

int main() {
  return ask();
}
