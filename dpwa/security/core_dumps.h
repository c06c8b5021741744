#pragma once

namespace dpwa {

// For programs whose memory holds keys: from here on the process leaves no core dump, and no other
// process of its user can read its memory or trace it (root can), unless the environment has
// DPWA_CORE_DUMPS=1. Process-wide and for the children that it forks, not for programs that it
// starts. Throws ConfigError for any value but 0 and 1.
void forbid_core_dumps();

}  // namespace dpwa
