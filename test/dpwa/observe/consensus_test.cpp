#include "dpwa/observe/consensus.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/rules/model_sketch.h"

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
