#include "demo.hpp"

#include <cstdio>

int main() {
  const int answer = ask();
  std::printf("%d\n", answer);
  return answer == 42 ? 0 : 1;
}
