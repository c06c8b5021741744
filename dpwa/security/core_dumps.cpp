#include "dpwa/security/core_dumps.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>

#include "dpwa/config/config.h"

namespace dpwa {

void forbid_core_dumps() {
  const char* wanted = std::getenv("DPWA_CORE_DUMPS");
  const std::string value = wanted == nullptr ? "" : wanted;
  if (value == "1") return;
  if (!value.empty() && value != "0")
    throw ConfigError("DPWA_CORE_DUMPS: '" + value + "' is not accepted; accepted: 0, 1");
  // The limit alone is not enough: a core_pattern that pipes into a program ignores it.
  ::prctl(PR_SET_DUMPABLE, 0);
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) == 0) {
    limit.rlim_cur = 0;
    ::setrlimit(RLIMIT_CORE, &limit);
  }
}

}  // namespace dpwa
