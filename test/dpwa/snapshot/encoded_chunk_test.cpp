#include "dpwa/snapshot/encoded_chunk.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/snapshot/landing.h"

namespace dpwa {
namespace {

constexpr Codec kCodecs[] = {Codec::raw, Codec::fp16, Codec::bf16, Codec::int8};

// Every way in which a codec meets a region, with gaps between them.
Manifest manifest_of_every_region() {
  return Manifest({{"single", DType::float32, BlendRule::interpolate, {3001}},
                   {"double", DType::float64, BlendRule::interpolate, {705}},
                   {"half", DType::float16, BlendRule::interpolate, {1501}},
                   {"brain", DType::bfloat16, BlendRule::interpolate, {9}},
                   {"count", DType::int64, BlendRule::maximum, {3}},
                   {"frozen", DType::float32, BlendRule::carry, {77}}});
}

std::vector<std::byte> model(const Manifest& manifest, std::uint64_t seed) {
  std::vector<std::byte> bytes(manifest.total_bytes());
  Random random(seed);
  const auto fill = [&](std::size_t tensor, auto draw) {
    const std::uint64_t count = manifest.tensors()[tensor].elements();
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto value = draw();
      std::memcpy(&bytes[manifest.offset_of(tensor) + i * sizeof value], &value, sizeof value);
    }
  };
  fill(0, [&] { return static_cast<float>(random.normal(0, 1)); });
  fill(1, [&] { return random.normal(0, 1); });
  fill(2, [&] { return static_cast<std::uint16_t>(0x3800 + random.below(0x800)); });  // 0.5 to 2
  fill(3, [&] { return static_cast<std::uint16_t>(0x3f00 + random.below(0x80)); });
  fill(4, [&] { return static_cast<std::int64_t>(random.below(1000)); });
  fill(5, [&] { return static_cast<float>(random.normal(0, 1)); });
  return bytes;
}

struct Fixture {
  Fixture()
      : store(manifest.total_bytes(), 4096, AlignedBuffer::plain),
        landing(manifest, AlignedBuffer::plain) {
    auto writer = store.begin();
    std::memcpy(writer->bytes().data(), own.data(), own.size());
    store.publish(std::move(*writer), {});
  }

  // Sends `range` of the peer in chunks; what the landing buffer then holds of it.
  std::vector<std::byte> send(Codec codec, LandingMode mode, ByteRange range,
                              std::uint64_t chunk_bytes) {
    landing.begin(mode, store.latest(), range);
    for (std::uint64_t at = 0; at < range.length; at += chunk_bytes) {
      const ByteRange chunk{range.offset + at, std::min(chunk_bytes, range.length - at)};
      std::vector<std::byte> payload(payload_bytes(manifest, codec, chunk));
      if (codec == Codec::raw) {
        std::memcpy(payload.data(), &peer[chunk.offset], chunk.length);
      } else {
        encode_chunk(manifest, codec, peer, chunk, payload);
      }
      landing.consume(codec, chunk, payload);
    }
    const auto landed = landing.bytes().subspan(range.offset, range.length);
    return {landed.begin(), landed.end()};
  }
  template <typename T>
  static T get(const std::vector<std::byte>& bytes, std::uint64_t offset, std::size_t element) {
    T value;
    std::memcpy(&value, &bytes[offset + element * sizeof(T)], sizeof(T));
    return value;
  }

  const Manifest manifest = manifest_of_every_region();
  const std::vector<std::byte> own = model(manifest, 1);
  std::vector<std::byte> peer = model(manifest, 2);
  SnapshotStore store;
  Landing landing;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "the length of a body is the sum over its chunks, whatever the range") {
  const std::uint64_t total = manifest.total_bytes();
  for (const Codec codec : kCodecs) {
    for (std::uint64_t offset = 0; offset <= total; offset += 64) {
      for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{4096},
                                         std::uint64_t{7040}, total - offset}) {
        if (length > total - offset) continue;
        for (const std::uint32_t chunk_bytes : {64u, 4096u, 4160u, 1u << 20}) {
          std::uint64_t sum = 0;
          for (std::uint64_t at = 0; at < length; at += chunk_bytes) {
            const ByteRange chunk{offset + at, std::min<std::uint64_t>(chunk_bytes, length - at)};
            const std::uint64_t payload = payload_bytes(manifest, codec, chunk);
            CHECK(payload <= chunk.length);
            sum += payload;
          }
          REQUIRE(payload_bytes(manifest, codec, {offset, length}, chunk_bytes) == sum);
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "only floating-point tensors that are wider than the codec shrink") {
  const auto bytes_of = [&](std::size_t tensor, Codec codec) {
    const std::uint64_t bytes = manifest.tensors()[tensor].bytes();
    return payload_bytes(manifest, codec, {manifest.offset_of(tensor), bytes});
  };
  CHECK(bytes_of(0, Codec::raw) == 4 * 3001);
  CHECK(bytes_of(0, Codec::fp16) == 2 * 3001);
  CHECK(bytes_of(0, Codec::bf16) == 2 * 3001);
  CHECK(bytes_of(0, Codec::int8) == 3001 + 188);
  CHECK(bytes_of(1, Codec::fp16) == 2 * 705);
  CHECK(bytes_of(1, Codec::int8) == 705 + 45);
  CHECK(bytes_of(2, Codec::bf16) == 2 * 1501);
  CHECK(bytes_of(2, Codec::int8) == 1501 + 94);
  CHECK(bytes_of(3, Codec::fp16) == 2 * 9);
  CHECK(bytes_of(3, Codec::int8) == 9 + 1);
  for (const Codec codec : kCodecs) {
    CHECK(bytes_of(4, codec) == 3 * 8);
    CHECK(bytes_of(5, codec) == 77 * 4);
  }
}

TEST_CASE_FIXTURE(Fixture, "a range that cuts an element can travel only as it is") {
  const ByteRange whole{0, manifest.total_bytes()};
  for (const Codec codec : kCodecs) CHECK(holds_whole_elements(manifest, codec, whole));
  const ByteRange cut{0, 4 * 3001 - 2};
  CHECK(holds_whole_elements(manifest, Codec::raw, cut));
  for (const Codec codec : {Codec::fp16, Codec::bf16, Codec::int8})
    CHECK_FALSE(holds_whole_elements(manifest, codec, cut));
  const ByteRange half_cut{manifest.offset_of(2), 63};
  CHECK(holds_whole_elements(manifest, Codec::fp16, half_cut));  // fp16 is not encoded as fp16
  CHECK_FALSE(holds_whole_elements(manifest, Codec::int8, half_cut));
}

TEST_CASE_FIXTURE(Fixture, "raw chunks land as the bytes that they are") {
  const ByteRange range{0, manifest.exchange_bytes()};
  landing.begin(LandingMode::difference, store.latest(), range);
  landing.consume(0, std::span(peer).first(range.length));
  const std::vector<std::byte> whole(landing.bytes().begin(), landing.bytes().end());
  for (const std::uint64_t chunk_bytes : {64UL, 4096UL, 1UL << 20}) {
    const auto landed = send(Codec::raw, LandingMode::difference, range, chunk_bytes);
    CHECK(std::equal(landed.begin(), landed.end(), whole.begin()));
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "encoded values land near what was sent, counters and frozen ones as sent") {
  const double tolerances[] = {0, 0x1p-11, 0x1p-8, 0x1p-7};
  for (const Codec codec : kCodecs) {
    CAPTURE(name_of(codec));
    const double tolerance = tolerances[static_cast<int>(codec) - 1];
    for (const std::uint64_t chunk_bytes : {64UL, 4096UL, 1UL << 20}) {
      const auto landed =
          send(codec, LandingMode::values, {0, manifest.total_bytes()}, chunk_bytes);
      CHECK(landing.stats().finite);
      double worst = 0;
      for (std::size_t i = 0; i < 3001; ++i) {
        const double sent = get<float>(peer, 0, i);
        // int8: against the largest of the block, at most 5 in this model.
        const double scale = codec == Codec::int8 ? 5 : std::abs(sent) + 1e-4;
        worst = std::max(worst, std::abs(get<float>(landed, 0, i) - sent) / scale);
      }
      CHECK(worst <= tolerance);
      CHECK((codec == Codec::raw || worst > tolerance / 8));  // it was encoded
      worst = 0;
      for (std::size_t i = 0; i < 705; ++i) {
        const double sent = get<double>(peer, manifest.offset_of(1), i);
        const double scale = codec == Codec::int8 ? 5 : std::abs(sent) + 1e-4;
        worst =
            std::max(worst, std::abs(get<double>(landed, manifest.offset_of(1), i) - sent) / scale);
      }
      CHECK(worst <= tolerance);
      for (const std::size_t tensor : {4, 5}) {
        const std::uint64_t offset = manifest.offset_of(tensor);
        CHECK(std::memcmp(&landed[offset], &peer[offset], manifest.tensors()[tensor].bytes()) == 0);
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "a peer with the same model lands no difference at all") {
  peer = own;
  for (const Codec codec : kCodecs) {
    CAPTURE(name_of(codec));
    const ByteRange range{0, manifest.offset_of(4)};  // what interpolates
    const auto landed = send(codec, LandingMode::difference, range, 4096);
    CHECK(std::ranges::all_of(landed, [](std::byte byte) { return byte == std::byte{0}; }));
    CHECK(landing.stats().squared_distance == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "the size of the chunks does not change what lands of fp16 and bf16") {
  const ByteRange range{64, manifest.exchange_bytes() - 64};
  for (const Codec codec : {Codec::fp16, Codec::bf16}) {
    const auto whole = send(codec, LandingMode::difference, range, 1 << 20);
    const auto distance = landing.stats().squared_distance;
    CHECK(send(codec, LandingMode::difference, range, 4096) == whole);
    CHECK(landing.stats().squared_distance == doctest::Approx(distance));
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "one encoded value that is not finite is noticed in any interpolated tensor") {
  SUBCASE("float32") {
    const float bad = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(&peer[4 * 3000], &bad, sizeof bad);
  }
  SUBCASE("float64") {
    const double bad = -std::numeric_limits<double>::infinity();
    std::memcpy(&peer[manifest.offset_of(1)], &bad, sizeof bad);
  }
  SUBCASE("float16") {
    const std::uint16_t bad = 0x7C00;
    std::memcpy(&peer[manifest.offset_of(2) + 20], &bad, sizeof bad);
  }
  for (const Codec codec : kCodecs) {
    for (const LandingMode mode : {LandingMode::difference, LandingMode::values}) {
      send(codec, mode, {0, manifest.exchange_bytes()}, 4096);
      CHECK_FALSE(landing.stats().finite);
    }
  }
}

}  // namespace dpwa
