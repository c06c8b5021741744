#include "dpwa/config/interpolation.h"

#include <utility>

#include "interpolation/registry.h"

namespace dpwa {

GuardedInterpolation make_interpolation(const InterpolationConfig& config) {
  const auto value = config.parameters.find("value");
  const double fallback = value != config.parameters.end() ? value->second : 0.5;
  auto policy = interpolation_registry().make(config.method, config.parameters);
  return GuardedInterpolation(
      with_divergence_threshold(std::move(policy), config.divergence_threshold), fallback);
}

}  // namespace dpwa
