#pragma once

#include <cstdint>
#include <string>

namespace dpwa {

// The process that keeps others from listening at this numeric address and port, such as "process
// 812 (dpwa-train)", as far as /proc tells it: empty for a process of another user or container.
std::string port_holder(const std::string& address, std::uint16_t port);

}  // namespace dpwa
