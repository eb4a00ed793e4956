#pragma once

/// Runs a hidden test case of this very program in a process of its own: for what ends a process, or needs a fresh one.

#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace testing {

/// Runs the test case of that name; the exit status, or 1000 + the signal that ended the process, or -1.
inline int run_in_subprocess(std::string test_name, std::vector<std::string> environment = {}) {
  std::string program = "/proc/self/exe";
  char* const arguments[] = {program.data(), test_name.data(), nullptr};
  std::vector<char*> variables;
  for (auto& each : environment) variables.push_back(each.data());
  for (char** each = environ; *each != nullptr; ++each) variables.push_back(*each);
  variables.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, variables.data()) != 0) return -1;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  if (WIFSIGNALED(status)) return 1000 + WTERMSIG(status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace testing
