#include "dpwa/base/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace dpwa {
namespace {

using Found = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Found parsed(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  constexpr auto discard = "9";
  if (getaddrinfo(address.c_str(), discard, &hints, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

std::string numeric(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int problem =
      getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return problem == 0 ? text.data() : "";
}

}  // namespace

std::string own_address_towards(const std::string& address) {
  const Found to = parsed(address);
  if (!to) return {};
  const int socket = ::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  // Connecting a datagram socket chooses the route and sends nothing.
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  auto* const place = reinterpret_cast<sockaddr*>(&own);
  const bool found = ::connect(socket, to->ai_addr, to->ai_addrlen) == 0 &&
                     ::getsockname(socket, place, &length) == 0;
  ::close(socket);
  return found ? numeric(place, length) : "";
}

bool is_of_this_machine(const std::string& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, &freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (numeric(each->ifa_addr, length) == address) return true;
  }
  return false;
}

}  // namespace dpwa
