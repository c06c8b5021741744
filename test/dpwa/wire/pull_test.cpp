#include <doctest/doctest.h>

#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

std::vector<std::byte> altered(std::size_t offset, std::uint8_t value) {
  const auto frame = encode(Pull{}, 1);
  const auto body = body_of(frame);
  std::vector<std::byte> content(body.begin(), body.end() - 4);
  content.at(offset) = std::byte{value};
  return sealed(content);
}

TEST_CASE("a PULL survives the round trip") {
  for (const bool full : {false, true}) {
    Pull sent{.known_version = ~std::uint64_t{0}, .offset = 1, .length = max_snapshot_bytes - 1};
    sent.full = full;
    sent.for_final_average = !full;
    sent.unchecked_chunks = !full;
    sent.deadline_ms = ~0u;
    sent.chunk_bytes = max_chunk_bytes;
    const auto frame = encode(sent, 1);
    CHECK(body_of(frame).size() == max_body_bytes(MessageType::pull));
    const auto pull = decode_pull(body_of(frame));
    REQUIRE(pull.has_value());
    CHECK(pull->known_version == sent.known_version);
    CHECK(pull->offset == sent.offset);
    CHECK(pull->length == sent.length);
    CHECK(pull->deadline_ms == sent.deadline_ms);
    CHECK(pull->chunk_bytes == max_chunk_bytes);
    CHECK(pull->codec == Codec::raw);
    CHECK(pull->full == full);
    CHECK(pull->for_final_average == !full);
    CHECK(pull->unchecked_chunks == !full);
  }
}

TEST_CASE("a PULL names the codec that it wants") {
  for (const Codec codec : {Codec::raw, Codec::fp16, Codec::bf16, Codec::int8}) {
    const auto pull = decode_pull(body_of(encode(Pull{.codec = codec}, 1)));
    REQUIRE(pull.has_value());
    CHECK(pull->codec == codec);
  }
}

TEST_CASE("a PULL with defaults survives the round trip") {
  const auto pull = decode_pull(body_of(encode(Pull{}, 1)));
  REQUIRE(pull.has_value());
  CHECK(pull->known_version == 0);
  CHECK(pull->length == 0);
  CHECK_FALSE(pull->full);
  CHECK_FALSE(pull->unchecked_chunks);
}

TEST_CASE("unknown codecs, flags and reserved bytes of a PULL are refused") {
  const std::pair<std::size_t, int> faults[] = {{32, 0}, {32, 5},    {32, 255}, {33, 4},
                                                {33, 7}, {33, 0x40}, {34, 1},   {35, 1}};
  for (const auto& [offset, value] : faults) {
    const auto pull = decode_pull(altered(offset, static_cast<std::uint8_t>(value)));
    REQUIRE_FALSE(pull.has_value());
    CHECK(pull.error().fault == Fault::bad_value);
  }
}

TEST_CASE("a PULL for unusable chunks is refused") {
  for (const std::uint32_t bytes : {0u, 64u, 4095u, 4097u, max_chunk_bytes + 64, ~0u}) {
    Pull message;
    message.chunk_bytes = bytes;
    CHECK_THROWS_AS(encode(message, 1), std::invalid_argument);
  }
  const auto pull = decode_pull(altered(28, 1));  // 512 KiB and one byte
  REQUIRE_FALSE(pull.has_value());
  CHECK(pull.error().fault == Fault::bad_value);
}

TEST_CASE("a range that ends beyond the bound or overflows is refused") {
  CHECK_THROWS_AS(encode(Pull{.offset = max_snapshot_bytes, .length = 1}, 1),
                  std::invalid_argument);
  CHECK_THROWS_AS(encode(Pull{.offset = ~0ull, .length = 2}, 1), std::invalid_argument);
  for (const std::size_t highest_byte : {15, 23}) {  // of the offset, of the length
    const auto pull = decode_pull(altered(highest_byte, 0xFF));
    REQUIRE_FALSE(pull.has_value());
    CHECK(pull.error().fault == Fault::bad_value);
  }
}

}  // namespace
}  // namespace dpwa::wire
