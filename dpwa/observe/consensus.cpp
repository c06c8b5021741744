#include "dpwa/observe/consensus.h"

#include <cmath>
#include <map>
#include <optional>

#include "dpwa/base/numbers.h"
#include "dpwa/rules/model_sketch.h"

namespace dpwa::observe {
namespace {

constexpr double finest = 1e-7;  // of the norm: the digits of a sketch end there

// A document is data from the network: none, unless it has a sketch of sound numbers.
std::optional<ModelSketch> sketch_in(const NodeStatus& node) {
  constexpr double largest = 1e50;  // its square is a number, and so is a sum of many
  const Json& sums = list_in(node.document, "sketch");
  const bool trains = absence_of(node).empty() && raw_text(node.document, "state") != "joining";
  if (!trains || sums.size() != ModelSketch::size) return std::nullopt;
  ModelSketch sketch;
  for (std::size_t k = 0; k < ModelSketch::size; ++k) {
    if (!sums[k].is_number() || !(std::abs(sums[k].get<double>()) < largest)) return std::nullopt;
    sketch.sums[k] = sums[k].get<double>();
  }
  return sketch;
}

}  // namespace

void tell_distances(std::vector<NodeStatus>& nodes) {
  std::map<NodeStatus*, ModelSketch> sketches;
  for (NodeStatus& node : nodes) {
    node.sketch.clear();
    if (const auto sketch = sketch_in(node)) {
      sketches.emplace(&node, *sketch);
      node.sketch.assign(sketch->sums.begin(), sketch->sums.end());
    }
    node.document.erase("sketch");
    node.document.erase("to_mean");
  }
  if (sketches.size() < 2) return;
  ModelSketch mean;
  for (const auto& [node, sketch] : sketches) {
    for (std::size_t k = 0; k < ModelSketch::size; ++k)
      mean.sums[k] += sketch.sums[k] / static_cast<double>(sketches.size());
  }
  for (const auto& [node, sketch] : sketches) {
    const double exact = sketch.distance(mean);
    const double distance = exact < finest * mean.norm() ? 0 : exact;
    Json& told = node->document["to_mean"] = {{"distance", with_digits(distance, 4)}};
    if (mean.norm() > 0) told["relative"] = with_digits(distance / mean.norm(), 4);
  }
}

}  // namespace dpwa::observe
