#include "dpwa/observe/consensus.h"

#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/rules/model_sketch.h"
#include "dpwa/snapshot/sketch.h"

namespace dpwa {
namespace {

using observe::Json;
using observe::NodeStatus;

NodeStatus sketched(const std::string& name, const Json& sketch,
                    const std::string& state = "training") {
  Json document{{"node", name}, {"state", state}, {"to_mean", "a lie"}};
  if (!sketch.is_null()) document["sketch"] = sketch;
  return {name, "h:1", "alive", "", std::move(document)};
}

Json all(double value) {
  return Json(std::vector<double>(ModelSketch::size, value));
}

}  // namespace

TEST_CASE("the distance of each node to the mean comes from the sketches alone") {
  std::vector<NodeStatus> nodes{sketched("w1", all(1)), sketched("w2", all(3)),
                                sketched("w3", nullptr), sketched("w4", all(100), "joining")};
  observe::tell_distances(nodes);
  for (const std::size_t of : {0, 1})
    CHECK(nodes[of].document["to_mean"] == Json({{"distance", 16.0}, {"relative", 0.5}}));
  for (const NodeStatus& each : nodes) CHECK_FALSE(each.document.contains("sketch"));
  for (const std::size_t of : {2, 3}) CHECK_FALSE(nodes[of].document.contains("to_mean"));
}

TEST_CASE("95 % of the distances are within 10 %, whatever the size of the model and the cluster") {
  for (const std::uint64_t elements : {500, 10'000, 100'000}) {
    const Manifest manifest({{"w", DType::float32, BlendRule::interpolate, {elements}}});
    for (const std::size_t size : {2, 4, 16}) {
      if (elements > 10'000 && size < 16) continue;  // the same in more time
      CAPTURE(elements);
      CAPTURE(size);
      const std::size_t clusters = 208 / size;
      std::size_t readings = 0, near = 0;
      for (std::size_t cluster = 0; cluster < clusters; ++cluster) {
        Random random(derive_seed(cluster, {elements, size}));
        std::vector<std::vector<float>> models(size, std::vector<float>(elements));
        std::vector<double> mean(elements);
        for (std::size_t e = 0; e < elements; ++e) {
          const double common = random.normal(0, 1);
          for (auto& model : models) {
            model[e] = static_cast<float>(common + random.normal(0, 0.05));
            mean[e] += double{model[e]} / static_cast<double>(size);
          }
        }
        std::vector<NodeStatus> nodes;
        for (const auto& model : models)
          nodes.push_back(
              sketched("w", Json(sketch_of(manifest, std::as_bytes(std::span(model))).sums)));
        observe::tell_distances(nodes);
        for (std::size_t i = 0; i < size; ++i) {
          double squares = 0;
          for (std::size_t e = 0; e < elements; ++e) squares += std::pow(models[i][e] - mean[e], 2);
          const double told = nodes[i].document["to_mean"]["distance"];
          near += std::abs(told / std::sqrt(squares) - 1) <= 0.1 ? 1 : 0;
          ++readings;
        }
      }
      CHECK(static_cast<double>(near) >= 0.95 * static_cast<double>(readings));
    }
  }
}

TEST_CASE("equal models have distance 0, and one model has none") {
  std::vector<NodeStatus> nodes{sketched("w1", all(0.1)), sketched("w2", all(0.1)),
                                sketched("w3", all(0.1))};
  observe::tell_distances(nodes);
  CHECK(nodes[2].document["to_mean"] == Json({{"distance", 0.0}, {"relative", 0.0}}));
  nodes = {sketched("w1", all(0)), sketched("w2", all(0))};
  observe::tell_distances(nodes);
  CHECK(nodes[0].document["to_mean"] == Json({{"distance", 0.0}}));
  nodes = {sketched("w1", all(1))};
  observe::tell_distances(nodes);
  CHECK_FALSE(nodes[0].document.contains("to_mean"));
}

TEST_CASE("a sketch that is none is left out") {
  Json text = all(1);
  text[7] = "1";
  Json huge = all(1);
  huge[7] = 1e200;
  std::vector<NodeStatus> nodes{sketched("w1", all(1)), sketched("w2", text), sketched("w3", huge),
                                sketched("w4", Json::array({1, 2})), sketched("w5", 3)};
  observe::tell_distances(nodes);
  for (const NodeStatus& each : nodes) CHECK_FALSE(each.document.contains("to_mean"));
}

}  // namespace dpwa
