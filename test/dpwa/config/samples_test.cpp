#include <doctest/doctest.h>

#include <algorithm>

#include "dpwa/config/config.h"

using namespace dpwa;

namespace {

const std::filesystem::path samples = std::filesystem::path(DPWA_SOURCE_DIR) / "samples";

}  // namespace

TEST_CASE("every sample loads, as a whole and as each of its nodes") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(samples)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    ++count;
    const Config config = load_cluster(entry.path());
    for (const NodeEntry& node : config.nodes) {
      CHECK(load_config(entry.path(), node.name).self_node().port == node.port);
    }
  }
  CHECK(count >= 4);
}

TEST_CASE("the sample in the original's form keeps the original's meaning") {
  const Config config = load_cluster(samples / "original.yaml");
  REQUIRE(config.nodes.size() == 4);
  CHECK(config.nodes[3].name == "w4");
  CHECK(config.nodes[3].port == 45003);
  CHECK(std::all_of(config.nodes.begin(), config.nodes.end(),
                    [](const NodeEntry& node) { return node.cores.empty(); }));
  CHECK(config.gossip.blend == BlendMode::lerp);
  CHECK(config.gossip.timeout == Duration(std::chrono::milliseconds(2500)));
  CHECK(config.gossip.step_budget == config.gossip.timeout);
  CHECK(config.interpolation.parameters == InterpolationParameters{{"value", 0.5}});
}
