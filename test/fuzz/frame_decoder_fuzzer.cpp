// Whole frames as they come off a socket, cut by its reads. Whatever the bytes: no crash, a frame
// that is accepted is exactly the one that its message encodes to, and the cuts change nothing.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "test/dpwa/session/source.h"
#include "test/dpwa/wire/samples.h"
#include "test/fuzz/require.h"

using namespace dpwa;
using namespace dpwa::wire;

namespace {

struct Came {
  FrameHeader header;
  std::vector<std::byte> body;
};

// The frame, in reads of at most `most` bytes; none: it is refused, or not whole.
std::optional<Came> read(std::span<const std::byte> bytes, std::size_t ahead, std::size_t most) {
  test::Source source(bytes, most);
  session::Incoming incoming(ahead);
  auto frame = source.next(incoming, test::any_frame());
  if (!frame || !*frame) return std::nullopt;
  const FrameHeader header = (*frame)->header;
  // Bytes of a SNAPSHOT are placed for what has come.
  if (incoming.unlanded_bytes() > bytes.size()) return std::nullopt;
  auto body = test::whole_body(source, incoming, std::move(**frame), 100);
  if (!body) return std::nullopt;
  DPWA_FUZZ_REQUIRE(body->size() == header.body_bytes);
  return Came{header, std::move(*body)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto frame = std::as_bytes(std::span(data, size));
  const auto again = transcode(frame);
  if (again) DPWA_FUZZ_REQUIRE(std::ranges::equal(*again, frame));
  constexpr std::size_t read_ahead[] = {0, 1, 40, 512, 32 << 10};
  const std::size_t ahead = read_ahead[size % 5];
  const std::size_t most = size == 0 ? 1 : 1 + data[size / 2];
  const auto whole = read(frame, ahead, size + 1);
  const auto cut = read(frame, ahead, most);
  DPWA_FUZZ_REQUIRE(whole.has_value() == cut.has_value());
  if (whole) DPWA_FUZZ_REQUIRE(whole->body == cut->body);
  if (again) DPWA_FUZZ_REQUIRE(whole && std::ranges::equal(whole->body, body_of(*again)));
  return 0;
}
