#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "interpolation/guarded.h"
#include "interpolation/registry.h"
#include "test/interpolation/capped_clock.h"

// What every registered policy must keep, built in or added, as the node calls it.

namespace {

constexpr double kFallback = 0.375;

dpwa::GuardedInterpolation guarded(const std::string& name, double threshold) {
  return {dpwa::with_divergence_threshold(dpwa::interpolation_registry().make(name, {}), threshold),
          kFallback};
}

std::vector<dpwa::FactorInput> grid() {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> values = {0,
                                      -0.0,
                                      1e-300,
                                      0.3,
                                      1,
                                      12345,
                                      1e200,
                                      Limits::max(),
                                      Limits::denorm_min(),
                                      Limits::infinity(),
                                      -Limits::infinity(),
                                      Limits::quiet_NaN(),
                                      -1};
  std::vector<dpwa::FactorInput> inputs;
  for (double clock : values) {
    for (double peer_clock : values) {
      for (double loss : values) {
        for (double peer_loss : values) inputs.push_back({clock, peer_clock, loss, peer_loss});
      }
    }
  }
  return inputs;
}

std::vector<std::string> policies() {
  dpwa::InterpolationRegistry& registry = dpwa::interpolation_registry();
  if (!registry.find("capped_clock")) registry.add(capped_clock_method());
  return registry.names();
}

}  // namespace

TEST_CASE("every policy stays in [0, 1] whatever the inputs, and repeats itself") {
  const std::vector<dpwa::FactorInput> inputs = grid();
  for (const std::string& name : policies()) {
    for (const double threshold : {0.0, 0.5}) {
      CAPTURE(name);
      CAPTURE(threshold);
      const dpwa::GuardedInterpolation policy = guarded(name, threshold);
      bool inside = true, repeats = true, fallback_value = true;
      for (const dpwa::FactorInput& input : inputs) {
        const dpwa::FactorResult first = policy.factor(input);
        const dpwa::FactorResult second = policy.factor(input);
        inside = inside && first.factor >= 0 && first.factor <= 1;
        repeats = repeats && first.factor == second.factor && first.fallback == second.fallback;
        fallback_value = fallback_value && (!first.fallback || first.factor == kFallback);
      }
      CHECK(inside);
      CHECK(repeats);
      CHECK(fallback_value);
    }
  }
}

TEST_CASE("every policy works without the fallback on ordinary progress") {
  for (const std::string& name : policies()) {
    CAPTURE(name);
    const dpwa::GuardedInterpolation policy = guarded(name, 0.2);
    for (const double clock : {1.0, 50.5, 1e6}) {
      for (const double peer_clock : {1.0, 49.25, 2e6}) {
        for (const double loss : {1e-4, 0.15, 2.3}) {
          for (const double peer_loss : {1e-5, 0.3, 7.0}) {
            CHECK_FALSE(policy.factor({clock, peer_clock, loss, peer_loss}).fallback);
          }
        }
      }
    }
  }
}

TEST_CASE("every policy moves at least as far towards a peer that is further ahead") {
  for (const std::string& name : policies()) {
    CAPTURE(name);
    const dpwa::GuardedInterpolation policy = guarded(name, 0);
    const double level = policy.factor({100, 100, 1, 1}).factor;
    CHECK(policy.factor({100, 200, 1, 1}).factor >= level);
    CHECK(policy.factor({100, 100, 1, 0.5}).factor >= level);
    CHECK(policy.factor({100, 50, 1, 2}).factor <= level);
  }
}
