#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dpwa::net {

// Distinct TCP ports that nobody has on any IPv4 address of this host, below those that the kernel
// gives to outgoing connections and to sockets bound to port 0, and that nobody else is given by
// this while the calling process lives. For nodes of which no file says where they listen; one
// thread at a time. Throws std::runtime_error when none are found.
std::vector<std::uint16_t> free_ports(std::size_t count);

// Why a process cannot listen at this numeric address and port now; empty: it can.
std::string listening_problem(const std::string& address, std::uint16_t port);

}  // namespace dpwa::net
