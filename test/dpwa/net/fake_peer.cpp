#include "test/dpwa/net/fake_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <utility>

namespace dpwa::test {

FakePeer::FakePeer(Script script, std::uint16_t port)
    : script_(std::move(script)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, generic, &size) != 0) {
    ::close(listener_);
    throw std::runtime_error("a fake peer cannot listen");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

FakePeer::FakePeer(Script script, Listener listener)
    : script_(std::move(script)), listener_(listener.descriptor) {
  thread_ = std::thread([this] { run(); });
}

FakePeer::~FakePeer() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    if (current_ >= 0) ::shutdown(current_, SHUT_RDWR);
  }
  thread_.join();
  ::close(listener_);
}

void FakePeer::run() {
  while (true) {
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0 && errno == EINTR) continue;
    if (descriptor < 0) return;
    RawSocket connection(RawSocket::Adopt{descriptor});
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      current_ = descriptor;
    }
    ++connections_;
    script_(connection);
    const std::lock_guard lock(mutex_);
    current_ = -1;
  }
}

namespace {

// What there is to read; empty: the stream has ended.
std::vector<std::byte> received(int descriptor) {
  std::vector<std::byte> bytes(std::size_t{64} << 10);
  const ssize_t got = ::recv(descriptor, bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

void forward(RawSocket& caller, std::uint16_t port, const TamperingProxy::Tamper& tamper) {
  RawSocket node(port);
  std::size_t offset = 0;
  while (true) {
    std::array<pollfd, 2> ready{{{caller.descriptor(), POLLIN, 0}, {node.descriptor(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) return;
    if (ready[0].revents != 0) {
      const auto bytes = received(caller.descriptor());
      if (bytes.empty() || !node.send(bytes)) return;
    }
    if (ready[1].revents != 0) {
      auto bytes = received(node.descriptor());
      if (bytes.empty()) return;
      const std::size_t count = bytes.size();
      const bool goes_on = tamper(bytes, offset);
      offset += count;
      if (!caller.send(bytes) || !goes_on) return;
    }
  }
}

}  // namespace

TamperingProxy::TamperingProxy(std::uint16_t node, Tamper tamper)
    : peer_([node, tamper = std::move(tamper)](RawSocket& caller) {
        forward(caller, node, tamper);
      }) {}

}  // namespace dpwa::test
