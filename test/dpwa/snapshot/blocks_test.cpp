#include "dpwa/snapshot/blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa {
namespace {

TensorSpec weight(std::string name, std::uint64_t elements,
                  BlendRule rule = BlendRule::interpolate) {
  return {std::move(name), DType::float32, rule, {elements}};
}

TEST_CASE("one block is all that an ordinary pull moves, frozen parameters left out") {
  const Manifest manifest({weight("a", 100), weight("frozen", 50, BlendRule::carry)});
  const auto blocks = layer_blocks(manifest, 1);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0] == ByteRange{0, manifest.exchange_bytes()});
}

std::vector<TensorSpec> layer(const std::string& name, std::uint64_t weights,
                              std::uint64_t outputs) {
  return {weight(name + ".weight", weights), weight(name + ".bias", outputs)};
}

std::vector<TensorSpec> norm(const std::string& name, std::uint64_t channels) {
  return {weight(name + ".weight", channels), weight(name + ".bias", channels),
          weight(name + ".running_mean", channels), weight(name + ".running_var", channels)};
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
    tensors.push_back(weight("t" + std::to_string(i), 1 + static_cast<std::uint64_t>(i) * 37));
  tensors.push_back({"count", DType::int64, BlendRule::maximum, {3}});
  tensors.push_back(weight("frozen", 50, BlendRule::carry));
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
  for (int i = 0; i < 12; ++i) tensors.push_back(weight("t" + std::to_string(i), 160));
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
  for (int i = 0; i < 8; ++i) tensors.push_back(weight("gru.w" + std::to_string(i), 1000));
  const Manifest manifest(tensors);
  for (const ByteRange& block : layer_blocks(manifest, 4))
    CHECK(block.offset % (manifest.offset_of(2)) == 0);
}

TEST_CASE("the blocks of a ResNet-18 are nearly equal") {
  std::vector<TensorSpec> tensors = joined({{weight("conv1.weight", 1728)}, norm("bn1", 64)});
  std::uint64_t from = 64;
  for (const std::uint64_t to : {64, 128, 256, 512}) {
    for (const char* half : {".0.", ".1."}) {
      const std::string name = "layer" + std::to_string(to) + half;
      const auto more = joined({{weight(name + "conv1.weight", from * to * 9)},
                                norm(name + "bn1", to),
                                {weight(name + "conv2.weight", to * to * 9)},
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
  const Manifest manifest({weight("f32", 1001),
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
  const Manifest small({weight("w", 40), weight("b", 3)});  // 160 bytes, and 12 from 192 on
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
  const Manifest frozen({weight("frozen", 5, BlendRule::carry)});
  const auto blocks = layer_blocks(frozen, 1);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].length == 0);
  CHECK_THROWS_AS(layer_blocks(frozen, 2), std::invalid_argument);
}

}  // namespace
}  // namespace dpwa
