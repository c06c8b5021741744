#include "dpwa/snapshot/landing.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "dpwa/base/random.h"

namespace dpwa {
namespace {

TensorSpec tensor(std::string name, DType dtype, BlendRule rule, std::uint64_t elements) {
  TensorSpec spec;
  spec.name = std::move(name);
  spec.dtype = dtype;
  spec.rule = rule;
  spec.shape = {elements};
  return spec;
}

Manifest mixed_manifest() {
  return Manifest({tensor("weight", DType::float32, BlendRule::interpolate, 333),
                   tensor("batches", DType::int64, BlendRule::maximum, 3),
                   tensor("half", DType::float16, BlendRule::interpolate, 70),
                   tensor("frozen", DType::float32, BlendRule::carry, 50),
                   tensor("mean", DType::float64, BlendRule::interpolate, 41),
                   tensor("bias", DType::float32, BlendRule::interpolate, 18),
                   tensor("mask", DType::boolean, BlendRule::carry, 5)});
}

// Parameters of the mixed model, every tensor in a buffer laid out by the manifest.
struct Model {
  explicit Model(const Manifest& manifest) : manifest(manifest), bytes(manifest.total_bytes()) {}

  template <typename T>
  T get(std::size_t index, std::size_t element) const {
    T value;
    std::memcpy(&value, bytes.data() + manifest.offset_of(index) + element * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void set(std::size_t index, std::size_t element, T value) {
    std::memcpy(bytes.data() + manifest.offset_of(index) + element * sizeof(T), &value, sizeof(T));
  }

  const Manifest& manifest;
  std::vector<std::byte> bytes;
};

// fp16 values are powers of two, so that their differences are exact.
Model filled(const Manifest& manifest, std::uint64_t seed) {
  Model model(manifest);
  Random random(seed);
  for (std::size_t e = 0; e < 333; ++e) model.set(0, e, static_cast<float>(random.normal(0, 1)));
  for (std::size_t e = 0; e < 3; ++e) model.set<std::int64_t>(1, e, random.below(1000));
  for (std::size_t e = 0; e < 70; ++e) model.set<std::uint16_t>(2, e, seed == 1 ? 0x3C00 : 0x4000);
  for (std::size_t e = 0; e < 50; ++e) model.set(3, e, static_cast<float>(random.normal(0, 1)));
  for (std::size_t e = 0; e < 41; ++e) model.set(4, e, random.normal(0, 1));
  for (std::size_t e = 0; e < 18; ++e) model.set(5, e, static_cast<float>(random.normal(0, 1)));
  for (std::size_t e = 0; e < 5; ++e) model.set<std::uint8_t>(6, e, random.below(2));
  return model;
}

struct Fixture {
  Fixture()
      : store(manifest.total_bytes(), 4096, AlignedBuffer::plain),
        landing(manifest, AlignedBuffer::plain) {
    auto writer = store.begin();
    std::memcpy(writer->bytes().data(), own.bytes.data(), own.bytes.size());
    store.publish(std::move(*writer), {});
  }
  // Lands the first `end` bytes of the peer in pieces of `piece` bytes.
  std::vector<std::byte> land(LandingMode mode, std::size_t piece, std::size_t end,
                              Crc32c* checksum = nullptr) {
    landing.begin(mode, store.latest(), {0, manifest.total_bytes()});
    const std::span<const std::byte> all(peer.bytes);
    for (std::size_t at = 0; at < end; at += piece)
      landing.consume(at, all.subspan(at, std::min(piece, end - at)), checksum);
    return {landing.bytes().begin(), landing.bytes().end()};
  }

  const Manifest manifest = mixed_manifest();
  const Model own = filled(manifest, 1);
  Model peer = filled(manifest, 2);
  SnapshotStore store;
  Landing landing;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "as difference, floating-point tensors land as peer - own, others as values") {
  Model landed(manifest);
  landed.bytes = land(LandingMode::difference, peer.bytes.size(), peer.bytes.size());
  CHECK(landing.mode() == LandingMode::difference);
  for (std::size_t e = 0; e < 333; ++e)
    CHECK(landed.get<float>(0, e) == peer.get<float>(0, e) - own.get<float>(0, e));
  for (std::size_t e = 0; e < 3; ++e)
    CHECK(landed.get<std::int64_t>(1, e) == peer.get<std::int64_t>(1, e));
  for (std::size_t e = 0; e < 70; ++e) CHECK(landed.get<std::uint16_t>(2, e) == 0x3C00);  // 2 - 1
  for (std::size_t e = 0; e < 50; ++e) CHECK(landed.get<float>(3, e) == peer.get<float>(3, e));
  for (std::size_t e = 0; e < 41; ++e)
    CHECK(landed.get<double>(4, e) == peer.get<double>(4, e) - own.get<double>(4, e));
  for (std::size_t e = 0; e < 18; ++e)
    CHECK(landed.get<float>(5, e) == peer.get<float>(5, e) - own.get<float>(5, e));
  for (std::size_t e = 0; e < 5; ++e)
    CHECK(landed.get<std::uint8_t>(6, e) == peer.get<std::uint8_t>(6, e));
}

TEST_CASE_FIXTURE(Fixture, "as values, everything lands bit for bit") {
  CHECK(land(LandingMode::values, 128, peer.bytes.size()) == peer.bytes);
}

TEST_CASE_FIXTURE(Fixture, "the size of the pieces changes nothing but the last bits of the sum") {
  double expected = 0;
  for (std::size_t e = 0; e < 333; ++e)
    expected += std::pow(peer.get<float>(0, e) - own.get<float>(0, e), 2);
  for (std::size_t e = 0; e < 41; ++e)
    expected += std::pow(peer.get<double>(4, e) - own.get<double>(4, e), 2);
  for (std::size_t e = 0; e < 18; ++e)
    expected += std::pow(peer.get<float>(5, e) - own.get<float>(5, e), 2);
  expected += 70;
  for (const LandingMode mode : {LandingMode::difference, LandingMode::values}) {
    const auto whole = land(mode, peer.bytes.size(), peer.bytes.size());
    for (const std::size_t piece : {64UL, 128UL, 192UL, 1024UL, 4096UL}) {
      CHECK(land(mode, piece, peer.bytes.size()) == whole);
      CHECK(landing.stats().squared_distance == doctest::Approx(expected));
      CHECK(landing.stats().finite);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "what lands passes through the checksum, whatever the pieces") {
  for (const LandingMode mode : {LandingMode::difference, LandingMode::values}) {
    for (const std::size_t piece : {64UL, 192UL, 1024UL, peer.bytes.size()}) {
      Crc32c checksum;
      land(mode, piece, peer.bytes.size(), &checksum);
      CHECK(checksum.value() == crc32c(peer.bytes));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "an ordinary pull leaves the carried tensors of the buffer alone") {
  const std::vector<std::byte> before(landing.bytes().begin(), landing.bytes().end());
  const auto after = land(LandingMode::difference, 64, manifest.exchange_bytes());
  CHECK(std::equal(after.begin() + static_cast<std::ptrdiff_t>(manifest.exchange_bytes()),
                   after.end(),
                   before.begin() + static_cast<std::ptrdiff_t>(manifest.exchange_bytes())));
  CHECK(manifest.exchange_bytes() < manifest.total_bytes());
}

TEST_CASE_FIXTURE(Fixture, "one value that is not finite is noticed in any interpolated tensor") {
  SUBCASE("float32, last element") {
    peer.set(5, 17, std::numeric_limits<float>::quiet_NaN());
  }
  SUBCASE("float16") {
    peer.set<std::uint16_t>(2, 69, 0x7C00);
  }
  SUBCASE("float64, first element") {
    peer.set(4, 0, -std::numeric_limits<double>::infinity());
  }
  for (const LandingMode mode : {LandingMode::difference, LandingMode::values}) {
    land(mode, 64, manifest.exchange_bytes());
    CHECK_FALSE(landing.stats().finite);
  }
}

TEST_CASE_FIXTURE(Fixture, "a frozen tensor that is not finite is ignored") {
  peer.set(3, 0, std::numeric_limits<float>::infinity());
  land(LandingMode::values, 64, peer.bytes.size());
  CHECK(landing.stats().finite);
}

TEST_CASE_FIXTURE(Fixture, "a new landing forgets the statistics of the last one") {
  const Model sound = peer;
  peer.set(0, 0, std::numeric_limits<float>::quiet_NaN());
  land(LandingMode::difference, 64, manifest.exchange_bytes());
  CHECK_FALSE(landing.stats().finite);
  peer.bytes = sound.bytes;
  land(LandingMode::difference, 64, manifest.exchange_bytes());
  CHECK(landing.stats().finite);
  CHECK(std::isfinite(landing.stats().squared_distance));
}

TEST_CASE_FIXTURE(Fixture, "after its release the own snapshot's buffer can be used again") {
  landing.begin(LandingMode::difference, store.latest(), {0, manifest.total_bytes()});
  const auto publish = [this] {
    auto writer = store.begin();
    if (!writer) return false;
    Progress progress = store.progress();
    ++progress.version;
    store.publish(std::move(*writer), progress);
    return true;
  };
  REQUIRE(publish());
  const auto held = store.latest();
  REQUIRE(publish());
  CHECK_FALSE(publish());
  landing.release();
  CHECK(publish());
}

namespace {

// A landing of one value of `dtype`, given as its bits.
template <class Bits>
bool may_overflow(DType dtype, Bits own, Bits peer, double scale = 1) {
  const Manifest manifest({tensor("x", dtype, BlendRule::interpolate, 1)});
  SnapshotStore store(manifest.total_bytes(), 4096, AlignedBuffer::plain);
  auto writer = store.begin();
  std::memcpy(writer->bytes().data(), &own, sizeof own);
  store.publish(std::move(*writer), {});
  Landing landing(manifest, AlignedBuffer::plain);
  landing.begin(LandingMode::difference, store.latest(), {0, manifest.total_bytes()});
  std::vector<std::byte> bytes(manifest.total_bytes());
  std::memcpy(bytes.data(), &peer, sizeof peer);
  landing.consume(0, bytes);
  return landing.may_overflow(scale);
}

}  // namespace

TEST_CASE("a float16 model whose blend might leave its range is found out, by the factor's scale") {
  constexpr std::uint16_t one = 0x3C00, minus_one = 0xBC00, largest = 0x7BFF, large = 0x7A00;
  CHECK_FALSE(may_overflow(DType::float16, one, minus_one));
  CHECK(may_overflow(DType::float16, one, largest));
  CHECK(may_overflow<std::uint16_t>(DType::float16, minus_one, largest | 0x8000));
  CHECK_FALSE(may_overflow(DType::float16, one, largest, 0.5));
  // Large on both sides, and close: nothing that a blend makes larger.
  CHECK_FALSE(may_overflow(DType::float16, large, large));
}

TEST_CASE("in the other dtypes no finite distance overflows") {
  CHECK_FALSE(may_overflow(DType::float32, 1.0F, 1e19F));
  CHECK_FALSE(may_overflow<std::uint16_t>(DType::bfloat16, 0x3F80, 0x5F00));
  CHECK_FALSE(may_overflow(DType::float64, 1.0, 1e150));
}

TEST_CASE("what rounding can do to a model follows its dtypes and its values") {
  const auto distance = []<class Value>(DType dtype, std::vector<Value> values, BlendRule rule) {
    const Manifest manifest({tensor("x", dtype, rule, values.size())});
    std::vector<std::byte> snapshot(manifest.total_bytes());
    std::memcpy(snapshot.data(), values.data(), values.size() * sizeof(Value));
    return rounding_distance(manifest, snapshot, {0, manifest.total_bytes()});
  };
  constexpr auto blended = BlendRule::interpolate;
  using Halves = std::vector<std::uint16_t>;
  const Halves three_and_four = {0x4040, 0x4080};  // bfloat16
  CHECK(distance(DType::bfloat16, three_and_four, blended) == 5 * 0x1p-7);
  CHECK(distance(DType::float16, Halves{0x4200, 0x4400}, blended) == 5 * 0x1p-10);
  CHECK(distance(DType::float32, std::vector<float>{3, -4}, blended) == 5 * 0x1p-23);
  CHECK(distance(DType::float64, std::vector<double>{3, 4}, blended) == 5 * 0x1p-52);
  CHECK(distance(DType::float64, std::vector<double>{3e200, 4e200}, blended) == 0);  // too large
  CHECK(distance(DType::bfloat16, three_and_four, BlendRule::carry) == 0);
  CHECK(distance(DType::bfloat16, Halves{0x7F80}, blended) == 0);  // an infinity
}

TEST_CASE("rounding within a block is that of the block's values") {
  const Manifest manifest({tensor("x", DType::float32, BlendRule::interpolate, 32)});
  std::vector<std::byte> snapshot(manifest.total_bytes());
  const float values[] = {3, 4};
  std::memcpy(snapshot.data() + 64, values, sizeof values);
  CHECK(rounding_distance(manifest, snapshot, {0, 64}) == 0);
  CHECK(rounding_distance(manifest, snapshot, {64, 64}) == 5 * 0x1p-23);
}

}  // namespace dpwa
