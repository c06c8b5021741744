#include <signal.h>

// A library to be loaded into a program before all others (LD_PRELOAD): sends the program a SIGHUP
// while its libraries are being constructed.

namespace {

[[gnu::constructor]] void hang_up() {
  ::raise(SIGHUP);
}

}  // namespace
