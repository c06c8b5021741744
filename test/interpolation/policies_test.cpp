#include <doctest/doctest.h>

#include "interpolation/registry.h"

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
