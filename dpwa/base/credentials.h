#pragma once

namespace dpwa {

// Whether the process at the other end of a connected Unix socket belongs to the user of this one,
// by the kernel's word.
bool is_same_user(int socket);

}  // namespace dpwa
