#pragma once

#include <iosfwd>

namespace dpwa::cli {

// The program `dpwa`: parses the arguments, runs the subcommand, and returns the exit code: 0 done,
// 1 failed while running, 2 wrong usage or configuration. Results go to `out`, human text to `err`.
// No exception escapes.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace dpwa::cli
