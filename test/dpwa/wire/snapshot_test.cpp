#include <doctest/doctest.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using HeadBytes = std::array<std::byte, snapshot_head_bytes>;

HeadBytes bytes_of(const SnapshotReplyHead& head) {
  const auto frame = encode(head, 1);
  HeadBytes bytes;
  std::copy_n(body_of(frame).begin(), bytes.size(), bytes.begin());
  return bytes;
}

// The sample head with `value` at `offset` and a checksum that fits again.
template <typename T>
Decoded<SnapshotReplyHead> decode_altered(std::size_t offset, T value) {
  const HeadBytes bytes = bytes_of(sample_head());
  std::vector<std::byte> content(bytes.begin(), bytes.end() - 4);
  boost::endian::endian_store<T, sizeof(T), boost::endian::order::little>(
      reinterpret_cast<unsigned char*>(&content.at(offset)), value);
  const std::vector<std::byte> body = sealed(content);
  const auto length = sample_head().length;
  return decode_snapshot_head(std::span<const std::byte>(body).first<snapshot_head_bytes>(),
                              snapshot_body_bytes(length, min_chunk_bytes));
}

TEST_CASE("the head of a SNAPSHOT survives the round trip, with extreme values too") {
  SnapshotReplyHead sent = sample_head();
  sent.progress.version = ~std::uint64_t{0};
  sent.progress.clock = 1e300;
  sent.progress.weight = std::numeric_limits<double>::denorm_min();
  sent.progress.time_us = std::numeric_limits<std::int64_t>::min();
  sent.progress.final = true;
  sent.unchecked_chunks = true;
  sent.state = NodeState::finished;
  sent.offset = max_snapshot_bytes - 1;
  sent.length = 1;
  sent.chunk_bytes = max_chunk_bytes;
  for (const double loss : {-infinity, nan}) {  // NaN: unknown
    sent.progress.loss = loss;
    const auto frame = encode(sent, 5);
    CHECK(frame.size() == header_bytes + snapshot_head_bytes);
    CHECK(header_of(frame).body_bytes == snapshot_head_bytes + chunk_header_bytes + 1);
    const auto head = decode_snapshot_head(bytes_of(sent), header_of(frame).body_bytes);
    REQUIRE(head.has_value());
    CHECK(encode(*head, 5) == frame);
  }
}

TEST_CASE("the body of a SNAPSHOT holds the head, the chunks and their headers") {
  CHECK(snapshot_body_bytes(0, 4096) == 96);
  CHECK(snapshot_body_bytes(1, 4096) == 96 + 8 + 1);
  CHECK(snapshot_body_bytes(4096, 4096) == 96 + 8 + 4096);
  CHECK(snapshot_body_bytes(4097, 4096) == 96 + 2 * 8 + 4097);
  CHECK(snapshot_body_bytes(max_snapshot_bytes, 4096) ==
        96 + (max_snapshot_bytes >> 12) * 8 + max_snapshot_bytes);
}

TEST_CASE("a clock that is negative or not finite is refused") {
  for (const double clock : {-1.0, -1e-300, nan, infinity, -infinity}) {
    CHECK(fault_of(decode_altered(16, clock)) == Fault::bad_value);
    SnapshotReplyHead head = sample_head();
    head.progress.clock = clock;
    CHECK_THROWS_AS(encode(head, 1), std::invalid_argument);
  }
  CHECK(decode_altered(16, 0.0).has_value());
}

TEST_CASE("a push-sum weight that is not positive and finite is refused") {
  for (const double weight : {0.0, -1.0, nan, infinity, -infinity}) {
    CHECK(fault_of(decode_altered(32, weight)) == Fault::bad_value);
  }
}

TEST_CASE("any loss is accepted: the guards of the interpolation judge it") {
  for (const double loss : {-1.0, nan, infinity, -infinity})
    CHECK(decode_altered(24, loss).has_value());
}

TEST_CASE("a range beyond the bound or that overflows is refused") {
  CHECK(fault_of(decode_altered(48, max_snapshot_bytes)) == Fault::bad_value);
  CHECK(fault_of(decode_altered(48, ~std::uint64_t{0})) == Fault::bad_value);
  CHECK(fault_of(decode_altered(56, max_snapshot_bytes + 1)) == Fault::bad_value);
  CHECK(fault_of(decode_altered(56, ~std::uint64_t{0})) == Fault::bad_value);
}

TEST_CASE("models of 3 GiB and of more than 2^32 bytes keep their lengths") {
  for (const std::uint64_t length : {std::uint64_t{3} << 30, (std::uint64_t{5} << 30) + 64}) {
    SnapshotReplyHead head = sample_head();
    head.offset = length;
    head.length = length;
    head.chunk_bytes = 512 << 10;
    const std::uint64_t chunks = (length + head.chunk_bytes - 1) / head.chunk_bytes;
    CHECK(snapshot_body_bytes(length, head.chunk_bytes) == 96 + 8 * chunks + length);
    const auto frame = encode(head, 1, length);
    const std::uint64_t most = snapshot_body_bytes(length, min_chunk_bytes);
    const auto header = decode_header(std::span(frame).first<header_bytes>(), most);
    REQUIRE(header.has_value());
    CHECK(header->body_bytes == 96 + 8 * chunks + length);
    const auto decoded = decode_snapshot_head(
        std::span<const std::byte>(frame).subspan<header_bytes, snapshot_head_bytes>(),
        header->body_bytes);
    REQUIRE(decoded.has_value());
    CHECK(decoded->offset == length);
    CHECK(decoded->length == length);
  }
}

TEST_CASE("an unusable chunk size is refused") {
  for (const std::uint32_t bytes :
       {0u, 1u, 64u, 4095u, 4096u - 64, 4097u, 4096u + 32, max_chunk_bytes + 64, ~0u}) {
    CHECK(fault_of(decode_altered(64, bytes)) == Fault::bad_value);
  }
}

TEST_CASE("unknown states, codecs, flags and reserved bytes of a SNAPSHOT are refused") {
  const std::pair<std::size_t, int> faults[] = {{68, 0}, {68, 4},    {69, 0}, {69, 5},
                                                {70, 2}, {70, 0x41}, {71, 1}, {91, 0x80}};
  for (const auto& [offset, value] : faults) {
    CHECK(fault_of(decode_altered(offset, static_cast<std::uint8_t>(value))) == Fault::bad_value);
  }
}

TEST_CASE("a head that disagrees with the length in the frame header is refused") {
  const HeadBytes bytes = bytes_of(sample_head());
  const std::uint64_t right = snapshot_body_bytes(sample_head().length, min_chunk_bytes);
  CHECK(decode_snapshot_head(bytes, right).has_value());
  for (const std::uint64_t wrong : {std::uint64_t{0}, right - 1, right + 1, ~std::uint64_t{0}}) {
    CHECK(fault_of(decode_snapshot_head(bytes, wrong)) == Fault::bad_length);
  }
  CHECK(fault_of(decode_altered(56, std::uint64_t{1})) == Fault::bad_length);
}

TEST_CASE("an encoded body may be as short as its chunk headers, and no longer than a raw one") {
  SnapshotReplyHead head = sample_head();
  const std::uint64_t raw = snapshot_body_bytes(head.length, head.chunk_bytes);
  for (const Codec codec : {Codec::fp16, Codec::bf16, Codec::int8}) {
    head.codec = codec;
    for (const std::uint64_t payload : {std::uint64_t{0}, std::uint64_t{2098}, head.length}) {
      const FrameHeader header = header_of(encode(head, 1, payload));
      CHECK(header.body_bytes == raw - head.length + payload);
      const auto decoded = decode_snapshot_head(bytes_of(head), header.body_bytes);
      REQUIRE(decoded.has_value());
      CHECK(decoded->codec == codec);
    }
    CHECK(fault_of(decode_snapshot_head(bytes_of(head), raw + 1)) == Fault::bad_length);
    CHECK(fault_of(decode_snapshot_head(bytes_of(head), raw - head.length - 1)) ==
          Fault::bad_length);
    CHECK_THROWS_AS(encode(head, 1, head.length + 1), std::invalid_argument);
  }
  CHECK_THROWS_AS(encode(sample_head(), 1, sample_head().length - 1), std::invalid_argument);
}

TEST_CASE("a chunk header survives the round trip, and must say what the head says") {
  const auto bytes = encode_chunk_header({4096, 0xDEADBEEF});
  const auto header = decode_chunk_header(bytes, 4096);
  REQUIRE(header.has_value());
  CHECK(header->payload_bytes == 4096);
  CHECK(header->crc == 0xDEADBEEF);
  const auto wrong = decode_chunk_header(bytes, 4095);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().fault == Fault::bad_length);
}

}  // namespace
namespace {

TEST_CASE("a MAPPED that no reader could use is neither sent nor accepted") {
  const auto refused = [](auto change) {
    Mapped message = sample_mapped();
    change(message);
    CHECK_THROWS_AS(encode(message, 1), std::invalid_argument);
  };
  refused([](Mapped& m) { m.place.mark = 0; });
  refused([](Mapped& m) { m.place.mark = 83; });  // being written
  refused([](Mapped& m) { m.place.memory = max_shared_buffers; });
  refused([](Mapped& m) { m.place.offset = max_snapshot_bytes; });
  refused([](Mapped& m) { m.progress.clock = -1; });
  refused([](Mapped& m) { m.progress.weight = 0; });

  const auto frame = encode(sample_mapped(), 1);
  CHECK(fault_of(decode_mapped(altered(frame, 64, 83))) == Fault::bad_value);
  CHECK(fault_of(decode_mapped(altered(frame, 72, 64))) == Fault::bad_value);
  for (const int state : {0, 4, 255}) {
    CHECK(fault_of(decode_mapped(altered(frame, 76, std::uint8_t(state)))) == Fault::bad_value);
  }
  CHECK(fault_of(decode_mapped(altered(frame, 77, 2))) == Fault::bad_value);
  for (std::size_t at = 78; at < 88; ++at) {
    CHECK(fault_of(decode_mapped(altered(frame, at, 1))) == Fault::bad_value);
  }
}

TEST_CASE("a RELEASE says that the snapshot landed, or that it did not, and nothing else") {
  for (const bool landed : {false, true}) {
    const auto release = decode_release(body_of(encode(Release{landed}, 1)));
    REQUIRE(release.has_value());
    CHECK(release->landed == landed);
  }
  const auto frame = encode(Release{true}, 1);
  CHECK(fault_of(decode_release(altered(frame, 0, 2))) == Fault::bad_value);
  CHECK(fault_of(decode_release(altered(frame, 1, 1))) == Fault::bad_value);
}

}  // namespace
}  // namespace dpwa::wire
