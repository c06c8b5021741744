#include "dpwa/snapshot/manifest.h"

#include <doctest/doctest.h>

#include <iomanip>
#include <sstream>
#include <stdexcept>

namespace dpwa {
namespace {

TensorSpec weight(std::string name, std::vector<std::uint64_t> shape, DType dtype = DType::float32,
                  BlendRule rule = BlendRule::interpolate) {
  return {std::move(name), dtype, rule, std::move(shape)};
}

std::string refusal(std::vector<TensorSpec> tensors) {
  try {
    Manifest manifest(std::move(tensors));
  } catch (const std::invalid_argument& fault) {
    return fault.what();
  }
  return "";
}

TEST_CASE(
    "tensors of one dtype and rule follow each other in the model's order, each at a multiple of "
    "64 bytes") {
  const Manifest manifest({weight("a", {3}), weight("b", {4, 4}), weight("c", {})});
  CHECK(manifest.offset_of(0) == 0);
  CHECK(manifest.offset_of(1) == 64);
  CHECK(manifest.offset_of(2) == 128);
  REQUIRE(manifest.regions().size() == 1);
  CHECK(manifest.regions()[0].bytes == 132);
  CHECK(manifest.total_bytes() == 132);
  CHECK(manifest.exchange_bytes() == 132);
}

TEST_CASE("regions follow each other by rule, then by dtype, each at a multiple of 64 bytes") {
  const Manifest manifest({weight("frozen", {5}, DType::float32, BlendRule::carry),
                           weight("count", {}, DType::int64, BlendRule::maximum),
                           weight("half", {7}, DType::float16), weight("w", {17}),
                           weight("count2", {2}, DType::int64, BlendRule::maximum)});
  const auto& regions = manifest.regions();
  REQUIRE(regions.size() == 4);
  CHECK(regions[0].dtype == DType::float32);
  CHECK(regions[0].offset == 0);
  CHECK(regions[0].bytes == 68);
  CHECK(regions[1].dtype == DType::float16);
  CHECK(regions[1].offset == 128);
  CHECK(regions[1].bytes == 14);
  CHECK(regions[2].rule == BlendRule::maximum);
  CHECK(regions[2].offset == 192);
  CHECK(regions[2].bytes == 80);
  CHECK(regions[3].rule == BlendRule::carry);
  CHECK(regions[3].offset == 320);
  CHECK(regions[3].bytes == 20);
  CHECK(manifest.exchange_bytes() == 272);
  CHECK(manifest.total_bytes() == 340);
  CHECK(manifest.offset_of(0) == 320);
  CHECK(manifest.offset_of(1) == 192);
  CHECK(manifest.offset_of(2) == 128);
  CHECK(manifest.offset_of(3) == 0);
  CHECK(manifest.offset_of(4) == 256);
}

TEST_CASE("a model of frozen parameters alone has nothing to exchange") {
  const Manifest manifest({weight("frozen", {5}, DType::uint8, BlendRule::carry)});
  CHECK(manifest.exchange_bytes() == 0);
  CHECK(manifest.total_bytes() == 5);
}

TEST_CASE("a tensor without elements takes no bytes") {
  const Manifest manifest({weight("none", {0, ~0ull, ~0ull}), weight("w", {1})});
  CHECK(manifest.offset_of(1) == 0);
  CHECK(manifest.total_bytes() == 4);
}

TEST_CASE("the fingerprint depends on names, dtypes, rules, shapes and order") {
  const Manifest base({weight("a", {2, 3}), weight("b", {4})});
  CHECK(base.fingerprint() == Manifest({weight("a", {2, 3}), weight("b", {4})}).fingerprint());
  const std::vector<Manifest> others = {
      Manifest({weight("a", {2, 3})}),
      Manifest({weight("b", {4}), weight("a", {2, 3})}),
      Manifest({weight("a", {3, 2}), weight("b", {4})}),
      Manifest({weight("a", {2, 3}), weight("c", {4})}),
      Manifest({weight("a", {2, 3}), weight("b", {4, 1})}),
      Manifest({weight("a", {2, 3}), weight("b", {4}, DType::bfloat16)}),
      Manifest({weight("a", {2, 3}), weight("b", {4}, DType::float32, BlendRule::carry)})};
  for (const Manifest& other : others) CHECK(other.fingerprint() != base.fingerprint());
}

TEST_CASE("the fingerprint of a known model never changes") {
  const Manifest manifest({weight("fc.weight", {10, 784}), weight("fc.bias", {10})});
  std::ostringstream hex;
  hex << std::hex << std::setfill('0');
  for (const int byte : manifest.fingerprint()) hex << std::setw(2) << byte;
  CHECK(hex.str() == "cdb823b629877a006345f1857ad700fa8669deecb06ba850cc713c98d79667c5");
}

TEST_CASE("a bad tensor is refused by number and name") {
  CHECK(refusal({weight("a", {1}), weight("", {1})}) == "tensor 1 has no name");
  CHECK(refusal({weight("a", {1}), weight("a", {2})}) ==
        "tensor 1 'a' has the name of another one");
  CHECK(refusal({weight(std::string(256, 'x'), {1})}).find("more than 255 bytes") !=
        std::string::npos);
  CHECK(refusal({weight("a\n", {1})}) ==
        "tensor 0 'a?' has a name that is not UTF-8 or holds control or invisible characters");
  CHECK(refusal({weight("a", std::vector<std::uint64_t>(17, 1))}) ==
        "tensor 0 'a' has more than 16 dimensions");
  CHECK(refusal({weight("a", {1}, static_cast<DType>(99))}) == "tensor 0 'a' has an unknown dtype");
  CHECK(refusal({weight("a", {1}, DType::float32, static_cast<BlendRule>(9))}) ==
        "tensor 0 'a' has an unknown blend rule");
  CHECK(refusal({weight("a", {1}, DType::int32)}) ==
        "tensor 0 'a' is not floating-point and cannot be interpolated");
  CHECK(refusal({weight("a", {1}, DType::float32, BlendRule::maximum)}) ==
        "tensor 0 'a' is not an integer and cannot follow the maximum rule");
}

TEST_CASE("sizes beyond the bound are refused, never wrapped") {
  CHECK(refusal({weight("a", {1ull << 32, 1ull << 32})}) ==
        "tensor 0 'a' has more than 2^48 elements");
  CHECK(refusal({weight("a", {1ull << 48})}) == "tensor 0 'a' brings the model above 2^48 bytes");
  CHECK(refusal({weight("a", {1ull << 46}), weight("b", {1})}) ==
        "tensor 1 'b' brings the model above 2^48 bytes");
  // The padding between two regions counts as well.
  CHECK(refusal({weight("a", {1}, DType::float16), weight("b", {(1ull << 46) - 1})}) ==
        "the model has more than 2^48 bytes");
  CHECK(refusal({weight("a", {(1ull << 46)})}).empty());
  CHECK(refusal(std::vector<TensorSpec>(65537)) ==
        "a model has at most 65536 tensors, this one 65537");
}

TEST_CASE("the first difference of two models is told in words") {
  const Manifest first({weight("a", {2}), weight("fc2.weight", {10, 128})});
  const auto difference = [](const Manifest& of_w1, const Manifest& of_w2) {
    const std::string w1 = "w1", w2 = "w2";
    return first_difference({w1, of_w1}, {w2, of_w2});
  };
  CHECK_FALSE(difference(first, first));
  CHECK(difference(first, Manifest({weight("a", {2}), weight("fc2.weight", {10, 256})})) ==
        "tensor 1 'fc2.weight' is float32[10,128] on 'w1' and float32[10,256] on 'w2'");
  CHECK(difference(first, Manifest({weight("a", {}, DType::float16), weight("b", {1})})) ==
        "tensor 0 'a' is float32[2] on 'w1' and float16[] on 'w2'");
  CHECK(difference(first, Manifest({weight("a", {2}), weight("fc3.weight", {10, 128})})) ==
        "tensor 1 is 'fc2.weight' on 'w1' and 'fc3.weight' on 'w2'");
  CHECK(difference(first, Manifest({weight("a", {2})})) ==
        "tensor 1 'fc2.weight' exists only on 'w1' (2 tensors on 'w1', 1 on 'w2')");
  CHECK(difference(Manifest(std::vector<TensorSpec>{}), first) ==
        "tensor 0 'a' exists only on 'w2' (0 tensors on 'w1', 2 on 'w2')");
  const Manifest frozen({weight("a", {2}, DType::float32, BlendRule::carry)});
  CHECK(difference(first, frozen) == "tensor 0 'a' is interpolated on 'w1' and carried on 'w2'");
}

}  // namespace
}  // namespace dpwa
