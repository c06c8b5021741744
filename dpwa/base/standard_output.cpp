#include "dpwa/base/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace dpwa {

void hold_standard_descriptors() {
  for (const int place : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(place, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free place is this one. Reads of it and writes to it fail as before, with EBADF.
    ::open("/dev/null", place == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int end_output(const std::string& program, int exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  const bool written = std::fflush(stdout) == 0 && !failed_before;
  if (written || exit_code != 0) return exit_code;
  std::fprintf(stderr, "%s: cannot write the result\n", program.c_str());
  return 1;
}

}  // namespace dpwa
