#include "bench/open_sockets.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <system_error>

namespace dpwa::bench {
namespace {

// TCP_ESTABLISHED of <netinet/tcp.h>, which does not go together with <linux/tcp.h>; that one alone
// has the byte counters.
constexpr std::uint8_t established = 1;

void add(int descriptor, OpenSockets& all) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  if (info.tcpi_state != established) return;
  constexpr std::size_t needed =
      offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
  if (size >= needed) all.bytes_received += info.tcpi_bytes_received;
  std::array<char, 32> name{};
  size = name.size() - 1;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0)
    all.congestion_controls.insert(name.data());
}

}  // namespace

OpenSockets open_sockets() {
  OpenSockets all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error))
    add(std::stoi(entry.path().filename().string()), all);
  return all;
}

}  // namespace dpwa::bench
