#include "adapters/launch/sockets.h"

#include <poll.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/base/backoff.h"
#include "dpwa/base/port_holder.h"
#include "dpwa/base/resolve_host.h"

namespace dpwa::launch {

namespace {

using Endpoint = boost::asio::ip::tcp::endpoint;

// At least one.
std::vector<Endpoint> resolve(const std::string& host, std::uint16_t port) {
  const Resolved resolved = resolve_host(host);
  if (resolved.addresses.empty()) throw std::runtime_error(host + ": " + resolved.error);
  std::vector<Endpoint> found;
  for (const std::string& address : resolved.addresses)
    found.emplace_back(boost::asio::ip::make_address(address), port);
  return found;
}

Endpoint bound_to(int descriptor) {
  Endpoint bound;
  auto length = static_cast<socklen_t>(bound.capacity());
  if (getsockname(descriptor, bound.data(), &length) == 0) bound.resize(length);
  return bound;
}

std::string numeric(const Endpoint& endpoint) {
  return endpoint.address().to_string();
}

}  // namespace

ListeningSocket::ListeningSocket(const std::string& host, std::uint16_t port) {
  int problem = 0;
  std::string tried;
  for (const Endpoint& at : resolve(host, port)) {
    const int fd = socket(at.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      problem = errno;
      continue;
    }
    const int on = 1;
    if (port != 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, at.data(), at.size()) == 0 && ::listen(fd, SOMAXCONN) == 0) {
      descriptor_ = fd;
      break;
    }
    problem = errno;
    tried = numeric(at);
    ::close(fd);
  }
  if (descriptor_ < 0) {
    const std::string holder = problem == EADDRINUSE ? port_holder(tried, port) : "";
    throw std::system_error(problem, std::generic_category(),
                            "cannot listen on " + host + ":" + std::to_string(port) +
                                (holder.empty() ? "" : ", which " + holder + " has"));
  }
  const Endpoint bound = bound_to(descriptor_);
  address_ = numeric(bound);
  port_ = bound.port();
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
int try_to_connect(const Endpoint& to, std::chrono::steady_clock::time_point deadline) {
  const int fd = socket(to.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  int problem = ::connect(fd, to.data(), to.size()) == 0 ? 0 : errno;
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
  constexpr Backoff pauses{std::chrono::milliseconds(2), std::chrono::milliseconds(50)};
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (unsigned tries = 1;; ++tries) {
    int problem = 0;
    for (const Endpoint& at : resolve(host, port)) {
      problem = try_to_connect(at, deadline);
      if (problem == 0) return numeric(at);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw std::system_error(problem, std::generic_category(), "nothing answers");
    }
    std::this_thread::sleep_for(pauses.nominal(tries));
  }
}

}  // namespace dpwa::launch
