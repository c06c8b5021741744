#include "dpwa/snapshot/blocks.h"

#include <doctest/doctest.h>

#include <set>

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

TEST_CASE("blocks cover the exchange without gaps and begin at tensors on multiples of 64 bytes") {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 40; ++i)
    tensors.push_back(weight("t" + std::to_string(i), 1 + static_cast<std::uint64_t>(i) * 37));
  tensors.push_back({"count", DType::int64, BlendRule::maximum, {3}});
  tensors.push_back(weight("frozen", 50, BlendRule::carry));
  const Manifest manifest(tensors);
  std::set<std::uint64_t> starts;
  for (std::size_t i = 0; i < tensors.size(); ++i) starts.insert(manifest.offset_of(i));
  for (const std::size_t count : {2, 3, 7, 40, 64}) {
    CAPTURE(count);
    const auto blocks = layer_blocks(manifest, count);
    CHECK(blocks.size() <= count);
    CHECK(blocks.size() >= 2);
    std::uint64_t at = 0;
    for (const ByteRange& block : blocks) {
      CHECK(block.offset == at);
      CHECK(block.offset % 64 == 0);
      CHECK(block.length > 0);
      CHECK(starts.contains(block.offset));
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

TEST_CASE("a tensor larger than its share is never cut") {
  const Manifest manifest({weight("huge", 10000), weight("small", 10)});
  const auto blocks = layer_blocks(manifest, 4);
  REQUIRE(blocks.size() == 2);
  CHECK(blocks[0].length == 40000);
}

TEST_CASE("a model with nothing to exchange is one empty block") {
  const auto blocks = layer_blocks(Manifest({weight("frozen", 5, BlendRule::carry)}), 8);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].length == 0);
}

}  // namespace
}  // namespace dpwa
