#include "test/dpwa/net/tampering_proxy.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace dpwa::test {
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
