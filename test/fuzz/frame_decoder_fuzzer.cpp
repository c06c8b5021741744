// Whole frames as they come off a socket. Whatever the bytes: no crash, and a frame that is
// accepted is exactly the one that its message encodes to.

#include <algorithm>
#include <cstdint>
#include <span>

#include "test/dpwa/wire/samples.h"
#include "test/fuzz/require.h"

using namespace dpwa::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto frame = std::as_bytes(std::span(data, size));
  if (const auto again = transcode(frame)) DPWA_FUZZ_REQUIRE(std::ranges::equal(*again, frame));
  return 0;
}
