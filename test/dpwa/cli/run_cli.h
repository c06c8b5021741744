#pragma once

#include <string>
#include <vector>

namespace dpwa::test {

struct CliResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Runs the program `dpwa` inside the test with these arguments.
CliResult run_cli(const std::vector<std::string>& arguments);

}  // namespace dpwa::test
