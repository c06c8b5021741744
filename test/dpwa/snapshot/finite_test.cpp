#include "dpwa/snapshot/finite.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace dpwa {
namespace {

TensorSpec tensor(const char* name, DType dtype, BlendRule rule) {
  return {name, dtype, rule, {40}};
}

struct Model {
  template <class Bits>
  void set(std::size_t index, std::size_t element, Bits bits) {
    std::memcpy(bytes.data() + manifest.offset_of(index) + element * sizeof bits, &bits,
                sizeof bits);
  }
  const TensorSpec* first() const {
    return first_not_finite(manifest, bytes, {0, manifest.total_bytes()});
  }

  Manifest manifest{{tensor("weight", DType::float32, BlendRule::interpolate),
                     tensor("half", DType::float16, BlendRule::interpolate),
                     tensor("brain", DType::bfloat16, BlendRule::interpolate),
                     tensor("count", DType::int64, BlendRule::maximum),
                     tensor("frozen", DType::float32, BlendRule::carry),
                     tensor("mean", DType::float64, BlendRule::interpolate)}};
  std::vector<std::byte> bytes = std::vector<std::byte>(manifest.total_bytes());
};

}  // namespace

TEST_CASE_FIXTURE(Model, "the largest values of each type are finite") {
  set<std::uint32_t>(0, 0, 0x7f7fffff);
  set<std::uint16_t>(1, 0, 0xfbff);
  set<std::uint16_t>(2, 0, 0x7f7f);
  set<std::int64_t>(3, 0, -1);
  set<std::uint32_t>(4, 0, 0x7f800000);  // frozen: no node blends it
  set<std::uint64_t>(5, 0, 0xffef'ffff'ffff'ffff);
  CHECK(first() == nullptr);
}

TEST_CASE_FIXTURE(Model, "the first tensor that is not finite is that of the model's order") {
  set<std::uint64_t>(5, 39, 0x7ff0'0000'0000'0000);
  REQUIRE(first() != nullptr);
  CHECK(first()->name == "mean");
  set<std::uint16_t>(2, 39, 0xff80);
  CHECK(first()->name == "brain");
  set<std::uint16_t>(1, 1, 0x7e00);
  CHECK(first()->name == "half");
  set<std::uint32_t>(0, 39, 0xffc00001);
  CHECK(first()->name == "weight");
  const ByteRange last{manifest.offset_of(0) + 39 * 4, 4};
  CHECK(first_not_finite(manifest, bytes, last) != nullptr);
  CHECK(first_not_finite(manifest, bytes, {manifest.offset_of(0), 39 * 4}) == nullptr);
}

}  // namespace dpwa
