#include <doctest/doctest.h>

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "dpwa/rules/options.h"
#include "dpwa/snapshot/blocks.h"
#include "dpwa/snapshot/encoded_chunk.h"
#include "dpwa/snapshot/manifest.h"

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

namespace dpwa {
namespace {

TensorSpec layer(std::string name, std::uint64_t elements,
                 BlendRule rule = BlendRule::interpolate) {
  return {std::move(name), DType::float32, rule, {elements}};
}

TEST_CASE("one block is all that an ordinary pull moves, frozen parameters left out") {
  const Manifest manifest({layer("a", 100), layer("frozen", 50, BlendRule::carry)});
  const auto blocks = layer_blocks(manifest, 1);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0] == ByteRange{0, manifest.exchange_bytes()});
}

std::vector<TensorSpec> layer(const std::string& name, std::uint64_t weights,
                              std::uint64_t outputs) {
  return {layer(name + ".weight", weights), layer(name + ".bias", outputs)};
}

std::vector<TensorSpec> norm(const std::string& name, std::uint64_t channels) {
  return {layer(name + ".weight", channels), layer(name + ".bias", channels),
          layer(name + ".running_mean", channels), layer(name + ".running_var", channels)};
}

std::vector<TensorSpec> joined(const std::vector<std::vector<TensorSpec>>& layers) {
  std::vector<TensorSpec> all;
  for (const auto& one : layers) all.insert(all.end(), one.begin(), one.end());
  return all;
}

// Every cut, named by the layer that it lies in or by nothing when it lies between two.
std::vector<std::string> parted_layers(const Manifest& manifest,
                                       const std::vector<ByteRange>& blocks) {
  const auto layer_of = [](const TensorSpec& tensor) {
    return tensor.name.substr(0, tensor.name.rfind('.'));
  };
  std::vector<std::string> parted;
  for (std::size_t b = 1; b < blocks.size(); ++b) {
    std::string before, after;
    for (std::size_t i = 0; i < manifest.tensors().size(); ++i) {
      const std::uint64_t begin = manifest.offset_of(i);
      if (begin < blocks[b].offset) before = layer_of(manifest.tensors()[i]);
      if (begin + manifest.tensors()[i].bytes() > blocks[b].offset && after.empty())
        after = layer_of(manifest.tensors()[i]);
    }
    parted.push_back(before == after ? before : "");
  }
  return parted;
}

// Largest and smallest block, in shares.
std::pair<double, double> extremes(const std::vector<ByteRange>& blocks) {
  const auto [least, most] = std::ranges::minmax_element(blocks, {}, &ByteRange::length);
  const double share =
      static_cast<double>(blocks.back().end()) / static_cast<double>(blocks.size());
  return {static_cast<double>(least->length) / share, static_cast<double>(most->length) / share};
}

TEST_CASE("blocks cover the exchange without gaps, as many as asked, on multiples of 64 bytes") {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 40; ++i)
    tensors.push_back(layer("t" + std::to_string(i), 1 + static_cast<std::uint64_t>(i) * 37));
  tensors.push_back({"count", DType::int64, BlendRule::maximum, {3}});
  tensors.push_back(layer("frozen", 50, BlendRule::carry));
  const Manifest manifest(tensors);
  for (std::size_t count = 1; count <= max_blocks; ++count) {
    CAPTURE(count);
    const auto blocks = layer_blocks(manifest, count);
    CHECK(blocks.size() == count);
    std::uint64_t at = 0;
    for (const ByteRange& block : blocks) {
      CHECK(block.offset == at);
      CHECK(block.offset % 64 == 0);
      CHECK(block.length > 0);
      at = block.end();
    }
    CHECK(at == manifest.exchange_bytes());
  }
}

TEST_CASE("equal tensors are cut into equal blocks") {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 12; ++i) tensors.push_back(layer("t" + std::to_string(i), 160));
  const auto blocks = layer_blocks(Manifest(tensors), 4);
  REQUIRE(blocks.size() == 4);
  for (const ByteRange& block : blocks) CHECK(block.length == 3 * 640);
}

TEST_CASE("a tensor larger than its share is cut, so that blocks are nearly equal") {
  const Manifest mlp(joined({layer("fc1", 784 * 128, 128), layer("fc2", 1280, 10)}));
  for (const std::size_t count : {2, 4, 16}) {
    CAPTURE(count);
    const auto [least, most] = extremes(layer_blocks(mlp, count));
    CHECK(least > 0.98);
    CHECK(most < 1.02);
  }
  const auto blocks = layer_blocks(mlp, 4);
  CHECK(blocks.back().offset <
        mlp.offset_of(1));  // the bias of fc1 lies with the end of its weight
}

TEST_CASE("a layer no larger than its share is never parted") {
  const Manifest model(
      joined({layer("a", 4000, 100), norm("an", 25), layer("b", 4000, 100), norm("bn", 25),
              layer("c", 4000, 100), norm("cn", 25), layer("d", 2000, 100)}));
  for (const std::size_t count : {2, 3}) {
    CAPTURE(count);
    const auto blocks = layer_blocks(model, count);
    CHECK(parted_layers(model, blocks) == std::vector<std::string>(count - 1));
    const auto [least, most] = extremes(blocks);
    CHECK(least > 0.5);
    CHECK(most < 1.5);
  }
  // With more blocks the large ones are parted, the small ones still not.
  for (const std::size_t count : {4, 6, 8, 12}) {
    CAPTURE(count);
    for (const std::string& parted : parted_layers(model, layer_blocks(model, count)))
      CHECK_FALSE(parted.ends_with('n'));
  }
}

TEST_CASE("a large layer of many tensors is cut between them") {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 8; ++i) tensors.push_back(layer("gru.w" + std::to_string(i), 1000));
  const Manifest manifest(tensors);
  for (const ByteRange& block : layer_blocks(manifest, 4))
    CHECK(block.offset % (manifest.offset_of(2)) == 0);
}

TEST_CASE("the blocks of a ResNet-18 are nearly equal") {
  std::vector<TensorSpec> tensors = joined({{layer("conv1.weight", 1728)}, norm("bn1", 64)});
  std::uint64_t from = 64;
  for (const std::uint64_t to : {64, 128, 256, 512}) {
    for (const char* half : {".0.", ".1."}) {
      const std::string name = "layer" + std::to_string(to) + half;
      const auto more = joined({{layer(name + "conv1.weight", from * to * 9)},
                                norm(name + "bn1", to),
                                {layer(name + "conv2.weight", to * to * 9)},
                                norm(name + "bn2", to)});
      tensors.insert(tensors.end(), more.begin(), more.end());
      from = to;
    }
  }
  const Manifest resnet(tensors);
  for (const std::size_t count : {2, 4, 8, 16, 32, 64}) {
    CAPTURE(count);
    const auto blocks = layer_blocks(resnet, count);
    CHECK(blocks.size() == count);
    const auto [least, most] = extremes(blocks);
    CHECK(least > 0.7);
    CHECK(most < 1.3);
  }
}

TEST_CASE("every block can travel in every codec") {
  const Manifest manifest({layer("f32", 1001),
                           {"f64", DType::float64, BlendRule::interpolate, {333}},
                           {"f16", DType::float16, BlendRule::interpolate, {777}},
                           {"bf16", DType::bfloat16, BlendRule::interpolate, {99}},
                           {"count", DType::int64, BlendRule::maximum, {3}}});
  for (const std::size_t count : {2, 5, 64}) {
    for (const ByteRange& block : layer_blocks(manifest, count)) {
      for (const Codec codec : {Codec::raw, Codec::fp16, Codec::bf16, Codec::int8})
        CHECK(holds_whole_elements(manifest, codec, block));
    }
  }
}

TEST_CASE("more blocks than the model can be cut into are refused, and said") {
  const Manifest small({layer("w", 40), layer("b", 3)});  // 160 bytes, and 12 from 192 on
  CHECK(most_blocks(small) == 4);
  const auto blocks = layer_blocks(small, 4);
  REQUIRE(blocks.size() == 4);
  CHECK(blocks.back() == ByteRange{192, 12});
  CHECK_THROWS_WITH_AS(layer_blocks(small, 5),
                       "5 blocks, but the model exchanges only 204 bytes, in steps of 64; "
                       "accepted: 1 to 4",
                       std::invalid_argument);
  CHECK_THROWS_AS(layer_blocks(small, 0), std::invalid_argument);
}

TEST_CASE("a model with nothing to exchange is one empty block, and no more") {
  const Manifest frozen({layer("frozen", 5, BlendRule::carry)});
  const auto blocks = layer_blocks(frozen, 1);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].length == 0);
  CHECK_THROWS_AS(layer_blocks(frozen, 2), std::invalid_argument);
}

}  // namespace
}  // namespace dpwa
