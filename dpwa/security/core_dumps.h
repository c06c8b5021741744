#pragma once

namespace dpwa {

// For programs with keys in memory. From now on the process leaves no core dump, and no other
// process of its user can read its memory or trace it; root can. DPWA_CORE_DUMPS=1 in the
// environment switches this off. It holds for the process and the children that it forks, but not
// for programs that it starts. Throws ConfigError when DPWA_CORE_DUMPS is neither 0 nor 1.
void forbid_core_dumps();

}  // namespace dpwa
