#pragma once

#include <iosfwd>

namespace dpwa::bench {

// The program `dpwa-bench`: parses the arguments, runs the subcommand, and returns the exit code: 0
// done, 1 failed while running (compare: something got worse), 2 wrong usage. Results go to `out`,
// human text to `err`. No exception escapes.
int run(int argc, char** argv, std::ostream& out, std::ostream& err);

}  // namespace dpwa::bench
