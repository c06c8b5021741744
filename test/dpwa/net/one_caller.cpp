#include "test/dpwa/net/one_caller.h"

#include <doctest/doctest.h>

#include <boost/endian/conversion.hpp>

#include "dpwa/base/checksum.h"
#include "test/support/eventually.h"

namespace dpwa::test {

ServerOptions OneCaller::options() {
  ServerOptions options;
  options.connections.in_all = 1;
  return options;
}

void OneCaller::check_unharmed() {
  CHECK(node.serves_an_honest_peer());
  CHECK(eventually([&] { return node.free_buffers() == 2; }));
  CHECK(node.local().store.latest()->progress().version == 1);
}

Bytes header(wire::MessageType type, std::uint64_t body_bytes) {
  const auto bytes = wire::encode_header({type, 1, body_bytes});
  return {bytes.begin(), bytes.end()};
}

Bytes patched(Bytes frame, std::size_t offset, std::uint8_t value) {
  frame.at(offset) = std::byte{value};
  boost::endian::store_little_u32(
      reinterpret_cast<unsigned char*>(frame.data()) + wire::header_bytes - 4,
      crc32c(std::span(frame).first(wire::header_bytes - 4)));
  return frame;
}

Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace dpwa::test
