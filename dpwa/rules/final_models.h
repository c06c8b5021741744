#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/rules/model_sketch.h"

namespace dpwa {

// A final model, as each node knows it after it has read it.
struct FinalModel {
  ModelSketch sketch{};
  bool of_file = true;  // its node is of the cluster file
  // To the own model, exactly; NaN for the own model itself, and where that is not finite.
  double own_distance = std::numeric_limits<double>::quiet_NaN();
};

// Which final models make the average.
struct FinalChoice {
  std::vector<std::optional<double>> left_out;  // by model: its distance, when it is left out
  double bound = 0;                             // on the distance
  bool all() const;
};

// Leaves out of the final average what is far away from the models of most nodes: a liar, a node
// whose training has diverged, one that trained alone for long. Every node judges all models by the
// distances among them, its own one like any other, so all nodes leave out the same.
//
// The distances are those to the medoid, the model whose median distance to the others is smallest.
// It is an honest one as long as most are. The bound is 30 times that median, at least 5 % of the
// models' median norm, which harms nobody, and at most 3 times that norm: of two models nobody can
// say which one is at fault, but they do not average when one is several times as large as the
// other. Where two models or more are of the cluster file, only these choose the medoid and the
// median, because a process that may join can do so under many names. A model with a sketch that is
// not finite, or that understates the exact distance to the own model by more than a factor of 3,
// is left out. When no two models are within the bound, only the own one is left. `models`: in the
// order of the names, `own` among them.
FinalChoice choose_final_models(std::span<const FinalModel> models, std::size_t own);

}  // namespace dpwa
