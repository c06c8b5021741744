#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "interpolation/guarded.h"
#include "interpolation/registry.h"
#include "test/interpolation/capped_clock.h"

namespace {

std::unique_ptr<dpwa::Interpolation> make(const std::string& name,
                                          const dpwa::InterpolationParameters& parameters = {}) {
  return dpwa::interpolation_registry().make(name, parameters);
}

}  // namespace

TEST_CASE("constant gives its value, one half by default") {
  CHECK(make("constant")->factor({.clock = 7, .peer_clock = 1}) == 0.5);
  CHECK(make("constant", {{"value", 0.2}})->factor({}) == 0.2);
}

TEST_CASE("clock gives the peer's share of both clocks") {
  const auto policy = make("clock");
  CHECK(policy->factor({.clock = 100, .peer_clock = 300}) == 0.75);
  CHECK(policy->factor({.clock = 300, .peer_clock = 100}) == 0.25);
  CHECK(policy->factor({.clock = 0, .peer_clock = 10}) == 1.0);
  CHECK(policy->factor({.clock = 10, .peer_clock = 0}) == 0.0);
}

TEST_CASE("loss gives the own share of both losses, so the worse node moves more") {
  const auto policy = make("loss");
  CHECK(policy->factor({.loss = 3, .peer_loss = 1}) == 0.75);
  CHECK(policy->factor({.loss = 1, .peer_loss = 3}) == 0.25);
}

TEST_CASE("linear goes from start to end and stays there once the clock is past the target") {
  const auto policy = make("linear", {{"start", 0.25}, {"end", 0.75}, {"target", 100}});
  CHECK(policy->factor({.clock = 0}) == 0.25);
  CHECK(policy->factor({.clock = 50}) == 0.5);
  CHECK(policy->factor({.clock = 100}) == 0.75);
  CHECK(policy->factor({.clock = 101}) == 0.75);
  CHECK(policy->factor({.clock = 1e9}) == 0.75);
}

TEST_CASE("linear by default falls from 0.5 to 0.1 over 10000 steps") {
  const auto policy = make("linear");
  CHECK(policy->factor({.clock = 0}) == 0.5);
  CHECK(policy->factor({.clock = 5000}) == doctest::Approx(0.3));
  CHECK(policy->factor({.clock = 20000}) == 0.1);
}

TEST_CASE("loss_divergence squares the losses and is damped below its target") {
  const auto policy = make("loss_divergence", {{"target", 2}});
  CHECK(policy->factor({.loss = 4, .peer_loss = 4}) == 0.5);  // at or above the target: not damped
  CHECK(policy->factor({.loss = 6, .peer_loss = 2}) == 0.9);
  CHECK(policy->factor({.loss = 1, .peer_loss = 1}) == 0.25);  // 1/2 * 1/2
  CHECK(make("loss_divergence")->factor({.loss = 0.5, .peer_loss = 0.5}) == 0.25);
}

TEST_CASE("a policy states the inputs that it uses") {
  const auto uses = [](const std::string& name) {
    const dpwa::FactorUses used = make(name)->uses();
    return std::string(used.clock ? "c" : "") + (used.peer_clock ? "C" : "") +
           (used.loss ? "l" : "") + (used.peer_loss ? "L" : "");
  };
  CHECK(uses("constant") == "");
  CHECK(uses("clock") == "cC");
  CHECK(uses("loss") == "lL");
  CHECK(uses("linear") == "c");
  CHECK(uses("loss_divergence") == "lL");
}

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
