#include "interpolation/guarded.h"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "interpolation/registry.h"

namespace {

std::unique_ptr<dpwa::Interpolation> constant(double value) {
  return dpwa::interpolation_registry().make("constant", {{"value", value}});
}

constexpr double kFallback = 0.25;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

dpwa::GuardedInterpolation guarded(const std::string& name, double threshold = 0) {
  return {dpwa::with_divergence_threshold(dpwa::interpolation_registry().make(name, {}), threshold),
          kFallback};
}

void check_fallback(const dpwa::FactorResult& result) {
  CHECK(result.fallback);
  CHECK(result.factor == kFallback);
}

// Returns whatever it was told to, as a careless policy might, and states no uses.
class Careless : public dpwa::Interpolation {
 public:
  explicit Careless(double result) : result_(result) {}
  double factor(const dpwa::FactorInput&) const override { return result_; }

 private:
  double result_;
};

dpwa::FactorResult guard_careless(double result, const dpwa::FactorInput& input = {}) {
  return dpwa::GuardedInterpolation(std::make_unique<Careless>(result), kFallback).factor(input);
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

TEST_CASE("0/0 falls back and is reported") {
  check_fallback(guarded("clock").factor({}));
  check_fallback(guarded("loss").factor({.clock = 1, .peer_clock = 1}));
  check_fallback(guarded("loss_divergence").factor({.clock = 1, .peer_clock = 1}));
}

TEST_CASE("a negative or non-finite input that the policy uses falls back and is reported") {
  for (const double bad : {-1.0, -1e-9, kNan, kInfinity, -kInfinity}) {
    CAPTURE(bad);
    check_fallback(guarded("clock").factor({.clock = bad, .peer_clock = 1}));
    check_fallback(guarded("clock").factor({.clock = 1, .peer_clock = bad}));
    check_fallback(guarded("linear").factor({.clock = bad}));
    check_fallback(guarded("loss").factor({.loss = bad, .peer_loss = 1}));
    check_fallback(guarded("loss").factor({.loss = 1, .peer_loss = bad}));
    check_fallback(guarded("loss_divergence").factor({.loss = bad, .peer_loss = 1}));
    check_fallback(guarded("constant", 0.2).factor({.loss = bad}));
    check_fallback(guarded("clock", 0.2).factor({.clock = 1, .peer_clock = 1, .loss = bad}));
  }
}

TEST_CASE("a bad input that the policy does not use changes nothing") {
  for (const double bad : {-1.0, kNan, kInfinity}) {
    CAPTURE(bad);
    CHECK_FALSE(guarded("constant").factor({bad, bad, bad, bad}).fallback);
    CHECK_FALSE(guarded("clock").factor({1, 3, bad, bad}).fallback);
    CHECK(guarded("clock").factor({1, 3, bad, bad}).factor == 0.75);
    CHECK_FALSE(guarded("linear").factor({1, bad, bad, bad}).fallback);
    CHECK_FALSE(guarded("loss").factor({bad, bad, 1, 1}).fallback);
    CHECK_FALSE(guarded("constant", 0.2).factor({bad, bad, 1, bad}).fallback);
  }
}

TEST_CASE("a policy's result outside [0, 1] is clamped, one that is not finite falls back") {
  CHECK(guard_careless(1.5).factor == 1.0);
  CHECK_FALSE(guard_careless(1.5).fallback);
  CHECK(guard_careless(-0.5).factor == 0.0);
  CHECK_FALSE(guard_careless(-0.5).fallback);
  check_fallback(guard_careless(kNan));
  check_fallback(guard_careless(kInfinity));
}

TEST_CASE("a policy that does not say what it uses is guarded against every bad input") {
  CHECK_FALSE(guard_careless(0.5, {1, 1, 1, 1}).fallback);
  check_fallback(guard_careless(0.5, {kNan, 1, 1, 1}));
  check_fallback(guard_careless(0.5, {1, kNan, 1, 1}));
  check_fallback(guard_careless(0.5, {1, 1, kNan, 1}));
  check_fallback(guard_careless(0.5, {1, 1, 1, kNan}));
}

TEST_CASE("a guard without a policy or with an impossible fallback is refused") {
  CHECK_THROWS_AS(dpwa::GuardedInterpolation(nullptr, 0.5), std::invalid_argument);
  for (const double fallback : {-0.1, 1.1, kNan}) {
    CHECK_THROWS_AS(dpwa::GuardedInterpolation(std::make_unique<Careless>(0), fallback),
                    std::invalid_argument);
  }
}
