#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "dpwa/cli/app.h"

namespace dpwa::test {

struct CliResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Runs the program `dpwa` inside the test with these arguments.
inline CliResult run_cli(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"dpwa"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out, err;
  CliResult result;
  result.exit_code = cli::run(static_cast<int>(argv.size()), argv.data(), out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

}  // namespace dpwa::test
