#include "dpwa/net/open_connections.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

namespace dpwa::net {
namespace {

constexpr std::uint8_t established = 1;  // TCP_ESTABLISHED

struct Place {
  std::string host;
  std::uint16_t port = 0;
};

// Numeric; an IPv4 address that a socket for IPv6 has taken as IPv4. Empty: of another family.
Place place_of(const sockaddr_storage& storage) {
  Place place;
  char text[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
    place.port = ntohs(address.sin_port);
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  } else if (storage.ss_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
    place.port = ntohs(address.sin6_port);
    ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
  }
  place.host = text;
  if (place.host.starts_with("::ffff:")) place.host.erase(0, 7);
  return place;
}

using Asked = int (*)(int, sockaddr*, socklen_t*);
Place ask(Asked end, int descriptor) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  const bool answered = end(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) == 0;
  return answered ? place_of(storage) : Place{};
}

std::optional<OpenConnection> connection_of(int descriptor) {
  tcp_info info{};  // an older kernel fills in less of it
  socklen_t length = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  if (info.tcpi_state != established) return std::nullopt;
  const Place other = ask(::getpeername, descriptor);
  if (other.host.empty()) return std::nullopt;
  OpenConnection connection{ask(::getsockname, descriptor).port, other.host, other.port};
  connection.rtt_ms = info.tcpi_rtt / 1e3;
  connection.rtt_deviation_ms = info.tcpi_rttvar / 1e3;
  connection.segments_sent = info.tcpi_segs_out;
  // Without those that were sent again too early.
  connection.segments_sent_again =
      info.tcpi_total_retrans - std::min(info.tcpi_total_retrans, info.tcpi_dsack_dups);
  connection.bytes_sent = info.tcpi_bytes_acked;
  connection.bytes_received = info.tcpi_bytes_received;
  return connection;
}

}  // namespace

std::vector<OpenConnection> open_connections(std::size_t most) {
  std::vector<OpenConnection> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (auto connection = connection_of(descriptor)) found.push_back(std::move(*connection));
  }
  const auto moved = [](const OpenConnection& connection) {
    return connection.bytes_sent + connection.bytes_received;
  };
  std::ranges::sort(found, std::ranges::greater(), moved);
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace dpwa::net
