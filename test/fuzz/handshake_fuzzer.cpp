// HELLO, WELCOME, REJECT and MANIFEST behind a right checksum, which random bytes would never get
// past: the first byte chooses the message, the rest is its body. What a node accepts is examined
// as the server examines it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "dpwa/net/admission.h"
#include "test/dpwa/wire/samples.h"
#include "test/fuzz/require.h"

using namespace dpwa;
using namespace dpwa::wire;

namespace {

LocalProcess& local() {
  static LocalProcess node("digits", "w1", 1, {"w2"},
                           Manifest({{"w", DType::float32, BlendRule::interpolate, {2, 3}}}));
  return node;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::array types{MessageType::hello, MessageType::welcome, MessageType::reject,
                             MessageType::manifest};
  const MessageType type = types[data[0] % types.size()];
  const auto body = sealed(std::as_bytes(std::span(data + 1, size - 1)));
  const auto again = transcode(type, 7, body);
  if (again) DPWA_FUZZ_REQUIRE(std::ranges::equal(body_of(*again), body));
  if (type == MessageType::hello) {
    if (const auto hello = decode_hello(body)) (void)examine_hello(*hello, local());
  }
  if (type == MessageType::manifest) {
    if (const auto manifest = decode_manifest(body)) {
      const Reject reject = model_reject(local(), "w2", *manifest);
      (void)encode(reject, 7);
    }
  }
  return 0;
}
