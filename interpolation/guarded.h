#pragma once

#include <memory>
#include <optional>

#include "interpolation/interpolation.h"

namespace dpwa {

// Damps any policy once this node has nearly converged: f <- f * loss / threshold while
// loss < threshold. The result then uses the own loss as well (Interpolation::uses). A threshold of
// 0 switches it off and returns `inner` itself. Throws std::invalid_argument when `inner` is null
// or the threshold is negative or not finite.
std::unique_ptr<Interpolation> with_divergence_threshold(std::unique_ptr<Interpolation> inner,
                                                         double threshold);

struct FactorResult {
  double factor = 0;
  bool fallback = false;  // the inputs or the policy's result were unusable
};

// The policy that a node calls: `inner` behind every guard of the project. A negative or non-finite
// value of an input that `inner` uses (Interpolation::uses), or a result that is not finite (0/0),
// gives `fallback_factor` and is reported as such, for the caller to count; any other result is
// clamped to [0, 1]. Composed as
//   GuardedInterpolation(with_divergence_threshold(registry.make(...), threshold), fallback).
// Immutable; may be called from any thread.
class GuardedInterpolation {
 public:
  // Throws std::invalid_argument when `inner` is null or `fallback_factor` is outside [0, 1].
  GuardedInterpolation(std::unique_ptr<Interpolation> inner, double fallback_factor);
  FactorResult factor(const FactorInput& input) const;
  // The factor, when it is the same whatever the input.
  std::optional<double> constant() const;

 private:
  std::unique_ptr<Interpolation> inner_;
  double fallback_factor_;
};

}  // namespace dpwa
