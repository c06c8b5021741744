// Every message of the protocol behind right checksums: the first byte is the type, the rest the
// body. Of a message of the key-value store: its fields and payload, as kv_body() has them.

#include <algorithm>
#include <cstdint>
#include <span>

#include "dpwa/wire/kv_messages.h"
#include "test/dpwa/wire/samples.h"
#include "test/fuzz/kv_body.h"
#include "test/fuzz/require.h"

using namespace dpwa::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto type = static_cast<MessageType>(data[0]);
  const auto content = std::as_bytes(std::span(data + 1, size - 1));
  // The checksum of a SNAPSHOT ends its head; chunks follow.
  constexpr std::size_t head = snapshot_head_bytes - 4;
  std::vector<std::byte> body = type >= first_kv_type && type <= last_kv_type
                                    ? dpwa::test::kv_body(content)
                                    : sealed(content);
  if (type == MessageType::snapshot && content.size() > head) {
    body = sealed(content.first(head));
    body.insert(body.end(), content.begin() + head, content.end());
  }
  if (const auto again = transcode(type, 7, body)) {
    DPWA_FUZZ_REQUIRE(std::ranges::equal(body_of(*again), body));
  }
  return 0;
}
