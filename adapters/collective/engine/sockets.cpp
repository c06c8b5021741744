#include "adapters/collective/engine/sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/rendezvous.h"
#include "dpwa/base/port_holder.h"

namespace dpwa::collective {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, std::uint16_t port, int kind) {
  addrinfo hints{};
  hints.ai_socktype = kind;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (problem != 0) throw std::runtime_error(host + ": " + gai_strerror(problem));
  return {found, &freeaddrinfo};
}

std::string numeric(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

}  // namespace

ListeningSocket::ListeningSocket(const std::string& host, std::uint16_t port) {
  const auto addresses = resolve(host, port, SOCK_STREAM);
  int problem = 0;
  std::string tried;
  for (const auto* at = addresses.get(); at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      problem = errno;
      continue;
    }
    const int on = 1;
    if (port != 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, SOMAXCONN) == 0) {
      descriptor_ = fd;
      break;
    }
    problem = errno;
    tried = numeric(at->ai_addr, at->ai_addrlen);
    ::close(fd);
  }
  if (descriptor_ < 0) {
    const std::string holder = problem == EADDRINUSE ? port_holder(tried, port) : "";
    throw std::system_error(problem, std::generic_category(),
                            "cannot listen on " + host + ":" + std::to_string(port) +
                                (holder.empty() ? "" : ", which " + holder + " has"));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&bound), &length);
  address_ = numeric(reinterpret_cast<const sockaddr*>(&bound), length);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

WithoutNameServers::WithoutNameServers() {
  if ((_res.options & RES_INIT) == 0) res_init();
  servers_ = std::exchange(_res.nscount, 0);
}

WithoutNameServers::~WithoutNameServers() {
  _res.nscount = servers_;
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

namespace {

// 0, or the reason why there was no connection before the deadline.
int try_to_connect(const addrinfo& to, std::chrono::steady_clock::time_point deadline) {
  const int fd = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  int problem = ::connect(fd, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  if (problem == EINPROGRESS) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd writable{fd, POLLOUT, 0};
    socklen_t length = sizeof problem;
    if (poll(&writable, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) == 1) {
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length);
    } else {
      problem = ETIMEDOUT;
    }
  }
  ::close(fd);
  return problem;
}

}  // namespace

std::string await_listener(const std::string& host, std::uint16_t port,
                           std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds longest_pause(50);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (std::chrono::milliseconds pause(2);; pause = std::min(2 * pause, longest_pause)) {
    const auto addresses = resolve(host, port, SOCK_STREAM);
    int problem = 0;
    for (const auto* at = addresses.get(); at != nullptr; at = at->ai_next) {
      problem = try_to_connect(*at, deadline);
      if (problem == 0) return numeric(at->ai_addr, at->ai_addrlen);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw std::system_error(problem, std::generic_category(), "nothing answers");
    }
    std::this_thread::sleep_for(pause);
  }
}

std::string address_towards(const std::string& host) {
  const std::string what = "finding the own address towards " + host;
  try {
    const auto addresses = resolve(host, 9, SOCK_DGRAM);
    int problem = 0;
    for (const auto* at = addresses.get(); at != nullptr; at = at->ai_next) {
      const int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      sockaddr_storage own{};
      socklen_t length = sizeof own;
      // Connecting a datagram socket chooses the route and sends nothing.
      const bool found = fd >= 0 && ::connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
                         getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0;
      problem = errno;
      if (fd >= 0) ::close(fd);
      if (found) return numeric(reinterpret_cast<const sockaddr*>(&own), length);
    }
    throw std::system_error(problem, std::generic_category(), "no route");
  } catch (const std::exception& error) {
    throw CollectiveError(Failure::usage, what, "store", error.what());
  }
}

}  // namespace dpwa::collective
