#include "interpolation/divergence_threshold.h"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "interpolation/registry.h"

namespace {

std::unique_ptr<dpwa::Interpolation> constant(double value) {
  return dpwa::interpolation_registry().make("constant", {{"value", value}});
}

}  // namespace

TEST_CASE("a divergence threshold damps the factor in proportion while the loss is below it") {
  const auto policy = dpwa::with_divergence_threshold(constant(0.5), 0.2);
  CHECK(policy->factor({.loss = 0.1}) == 0.25);
  CHECK(policy->factor({.loss = 0}) == 0.0);
  CHECK(policy->factor({.loss = 0.2}) == 0.5);
  CHECK(policy->factor({.loss = 3}) == 0.5);
  CHECK(policy->factor({.loss = 3, .peer_loss = 0.01}) == 0.5);  // the own loss decides
}

TEST_CASE("a divergence threshold of 0 leaves the policy as it is") {
  auto inner = constant(0.5);
  const dpwa::Interpolation* before = inner.get();
  CHECK(dpwa::with_divergence_threshold(std::move(inner), 0).get() == before);
}

TEST_CASE("a damped policy uses the own loss besides what it used before") {
  const auto policy =
      dpwa::with_divergence_threshold(dpwa::interpolation_registry().make("clock", {}), 0.2);
  CHECK(policy->uses().clock);
  CHECK(policy->uses().peer_clock);
  CHECK(policy->uses().loss);
  CHECK_FALSE(policy->uses().peer_loss);
}

TEST_CASE("a divergence threshold that is negative or not finite is refused") {
  using Limits = std::numeric_limits<double>;
  for (const double threshold : {-0.1, Limits::quiet_NaN(), Limits::infinity()}) {
    CHECK_THROWS_AS(dpwa::with_divergence_threshold(constant(0.5), threshold),
                    std::invalid_argument);
  }
  CHECK_THROWS_AS(dpwa::with_divergence_threshold(nullptr, 0.1), std::invalid_argument);
}
