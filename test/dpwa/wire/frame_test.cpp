#include "dpwa/wire/frame.h"

#include <doctest/doctest.h>

#include <boost/endian/conversion.hpp>

#include "dpwa/base/checksum.h"
#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

using HeaderBytes = std::array<std::byte, header_bytes>;

// `header` with `value` at `offset` and a checksum that fits again.
HeaderBytes altered(HeaderBytes header, std::size_t offset, std::uint8_t value) {
  header[offset] = std::byte{value};
  const std::uint32_t crc = crc32c(std::span(header).first(28));
  boost::endian::store_little_u32(reinterpret_cast<unsigned char*>(&header[28]), crc);
  return header;
}

Fault fault_of(const HeaderBytes& header, std::uint64_t max_snapshot_body = 1 << 20) {
  const auto decoded = decode_header(header, max_snapshot_body);
  REQUIRE_FALSE(decoded.has_value());
  CHECK(decoded.error().detail.find('\n') == std::string::npos);
  return decoded.error().fault;
}

const HeaderBytes pull_header = encode_header({MessageType::pull, 9, 36});

TEST_CASE("a header survives the round trip") {
  for (const std::uint32_t request_id : {0u, 1u, 0xFFFFFFFFu}) {
    const auto header = decode_header(encode_header({MessageType::pull, request_id, 36}), 0);
    REQUIRE(header.has_value());
    CHECK(header->type == MessageType::pull);
    CHECK(header->request_id == request_id);
    CHECK(header->body_bytes == 36);
  }
}

TEST_CASE("a header is laid out as documented") {
  const HeaderBytes header = encode_header({MessageType::status, 0x04030201, 0x100});
  const std::uint8_t expected[28] = {'D', 'P', 'W', 'A', 1, 13, 0, 0, 1, 2, 3, 4, 0, 0,
                                     0,   0,   0,   1,   0, 0,  0, 0, 0, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < 28; ++i) CHECK(std::to_integer<int>(header[i]) == expected[i]);
}

TEST_CASE("bytes of another protocol are told by their magic, whatever follows") {
  HeaderBytes header{};
  const std::string_view http = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  for (std::size_t i = 0; i < header_bytes; ++i) header[i] = std::byte(http[i]);
  CHECK(fault_of(header) == Fault::bad_magic);
  CHECK(fault_of(HeaderBytes{}) == Fault::bad_magic);
}

TEST_CASE("another protocol version is named, even when its header has another checksum") {
  HeaderBytes header = pull_header;
  header[4] = std::byte{2};
  const auto decoded = decode_header(header, 0);
  REQUIRE_FALSE(decoded.has_value());
  CHECK(decoded.error().fault == Fault::bad_version);
  CHECK(decoded.error().detail == "the frame has protocol version 2; accepted: 1");
}

TEST_CASE("a wrong header checksum is refused before any other field is looked at") {
  HeaderBytes header = pull_header;
  header[5] = std::byte{99};
  CHECK(fault_of(header) == Fault::bad_checksum);
}

TEST_CASE("unknown message types are refused, the reserved ranges included") {
  for (const int type : {0, 20, 29, 31, 39, 64, 95, 255}) {
    CHECK(fault_of(altered(pull_header, 5, static_cast<std::uint8_t>(type))) == Fault::bad_type);
  }
}

TEST_CASE("flags and reserved fields that are not zero are refused") {
  for (const std::size_t offset : {6, 7, 12, 13, 14, 15, 24, 25, 26, 27}) {
    CHECK(fault_of(altered(pull_header, offset, 1)) == Fault::bad_value);
  }
}

TEST_CASE("a body above the bound of its type is refused") {
  for (int type = int(MessageType::hello); type <= int(MessageType::status); ++type) {
    const auto message = static_cast<MessageType>(type);
    if (message == MessageType::snapshot) continue;
    const std::uint64_t most = max_body_bytes(message);
    CHECK(decode_header(encode_header({message, 1, most}), 0).has_value());
    CHECK(fault_of(encode_header({message, 1, most + 1})) == Fault::bad_length);
    CHECK(fault_of(encode_header({message, 1, ~std::uint64_t{0}})) == Fault::bad_length);
    CHECK(fault_of(encode_header({message, 1, 3})) == Fault::bad_length);
  }
}

TEST_CASE("a snapshot body is bounded by what its receiver expects") {
  CHECK(max_body_bytes(MessageType::snapshot) == 0);
  CHECK(decode_header(encode_header({MessageType::snapshot, 1, 5000}), 5000).has_value());
  CHECK(fault_of(encode_header({MessageType::snapshot, 1, 5001}), 5000) == Fault::bad_length);
  CHECK(fault_of(encode_header({MessageType::snapshot, 1, 95}), 5000) == Fault::bad_length);
  CHECK(fault_of(encode_header({MessageType::snapshot, 1, 96}), 0) == Fault::bad_length);
}

TEST_CASE("a set of message types tells all 128 numbers apart, and holds none beyond") {
  for (unsigned number = 0; number < 256; ++number) {
    const auto type = static_cast<MessageType>(number);
    TypeSet types(type);
    for (unsigned other = 0; other < 256; ++other) {
      CAPTURE(other);
      const bool same = other == number && number < TypeSet::numbers;
      REQUIRE(types.has(static_cast<MessageType>(other)) == same);
    }
    types.add(MessageType::pull);
    CHECK(types.has(MessageType::pull));
    CHECK(types.has(type) == (number < TypeSet::numbers));
  }
  CHECK(TypeSet() == TypeSet(static_cast<MessageType>(128)));
  CHECK(TypeSet(MessageType::pull, MessageType::busy) ==
        TypeSet(MessageType::busy, MessageType::pull));
}

TEST_CASE("a type beside those of this version is accepted where its bound is given") {
  const std::array<TypeBound, 2> more{
      {{static_cast<MessageType>(64), 100}, {static_cast<MessageType>(95), 4}}};
  const auto decoded = [&](unsigned type, std::uint64_t body_bytes) {
    return decode_header(encode_header({static_cast<MessageType>(type), 1, body_bytes}), 0, more);
  };
  CHECK(decoded(64, 100).has_value());
  CHECK(decoded(95, 4).has_value());
  CHECK(decoded(64, 101).error().fault == Fault::bad_length);
  CHECK(decoded(64, 3).error().fault == Fault::bad_length);
  CHECK(decoded(65, 4).error().fault == Fault::bad_type);
  CHECK(decoded(int(MessageType::busy), 4).has_value());
  CHECK(decoded(int(MessageType::busy), 5).error().fault == Fault::bad_length);
  CHECK(fault_of(encode_header({static_cast<MessageType>(64), 1, 4})) == Fault::bad_type);
}

}  // namespace
}  // namespace dpwa::wire
