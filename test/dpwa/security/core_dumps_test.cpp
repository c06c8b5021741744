#include "dpwa/security/core_dumps.h"

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "dpwa/config/config.h"

using namespace dpwa;

namespace {

// In a child, as nothing makes a process dumpable again for certain: bit 0 = dumpable, bit 1 = a
// soft limit above 0 remains where the hard one allows it.
int state_with(const char* environment) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_DUMPABLE, 1);
    rlimit limit{};
    ::getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_CORE, &limit);
    if (environment == nullptr) {
      ::unsetenv("DPWA_CORE_DUMPS");
    } else {
      ::setenv("DPWA_CORE_DUMPS", environment, 1);
    }
    forbid_core_dumps();
    ::getrlimit(RLIMIT_CORE, &limit);
    const bool limited = limit.rlim_cur == 0 && limit.rlim_max != 0;
    ::_exit((::prctl(PR_GET_DUMPABLE) == 1 ? 1 : 0) + (limited ? 0 : 2));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a program with keys is not dumpable unless its environment asks for it") {
  rlimit hard{};
  REQUIRE(::getrlimit(RLIMIT_CORE, &hard) == 0);
  const int unlimited = 2;
  const int limited = hard.rlim_max == 0 ? unlimited : 0;
  CHECK(state_with(nullptr) == 0 + limited);
  CHECK(state_with("0") == 0 + limited);
  CHECK(state_with("1") == 1 + unlimited);
}

TEST_CASE("another value of DPWA_CORE_DUMPS is refused") {
  ::setenv("DPWA_CORE_DUMPS", "yes", 1);
  CHECK_THROWS_WITH_AS(forbid_core_dumps(),
                       "DPWA_CORE_DUMPS: 'yes' is not accepted; accepted: 0, 1", ConfigError);
  ::unsetenv("DPWA_CORE_DUMPS");
}
