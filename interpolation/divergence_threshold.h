#pragma once

#include <memory>

#include "interpolation/interpolation.h"

namespace dpwa {

// Damps any policy once this node has nearly converged: f <- f * loss / threshold while
// loss < threshold. The result then uses the own loss as well (Interpolation::uses). A threshold of
// 0 switches it off and returns `inner` itself. Throws std::invalid_argument when `inner` is null
// or the threshold is negative or not finite.
std::unique_ptr<Interpolation> with_divergence_threshold(std::unique_ptr<Interpolation> inner,
                                                         double threshold);

}  // namespace dpwa
