#pragma once

#include <string>

// Standard output as the place of a program's result. A result that cannot be written (a full disk,
// a closed descriptor) is a failure of the program. The functions work on the whole process; the
// main thread calls them.
namespace dpwa {

// Puts something that cannot be used into the place of each standard descriptor that is closed, so
// that no file or socket gets it and with it what is printed or logged. For the start of main(), or
// .preinit_array where constructors may open files.
void hold_standard_descriptors();

// Flushes stdout. The result is `exit_code`; or 1, after a line on stderr, where it is 0 and
// not all that was printed could be written.
int end_output(const std::string& program, int exit_code);

}  // namespace dpwa
