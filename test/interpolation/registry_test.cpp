#include "interpolation/registry.h"

#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "interpolation/guarded.h"
#include "test/interpolation/capped_clock.h"

namespace {

class Zero : public dpwa::Interpolation {
 public:
  double factor(const dpwa::FactorInput&) const override { return 0; }
};

dpwa::InterpolationMethod zero_method() {
  return {.name = "zero", .parameters = {}, .make = [](const dpwa::InterpolationParameters&) {
            return std::make_unique<Zero>();
          }};
}

std::string read(const std::string& path) {
  std::ifstream file(std::string(DPWA_SOURCE_DIR) + "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the registry knows the five built-in methods") {
  for (const char* name : {"clock", "constant", "linear", "loss", "loss_divergence"}) {
    CAPTURE(name);
    REQUIRE(dpwa::interpolation_registry().find(name) != nullptr);
    CHECK(dpwa::interpolation_registry().find(name)->name == name);
  }
  CHECK(dpwa::interpolation_registry().find("median") == nullptr);
}

TEST_CASE("an unknown method is refused with the names that are accepted, sorted") {
  dpwa::InterpolationRegistry registry;
  registry.add(zero_method());
  dpwa::InterpolationMethod another = zero_method();
  another.name = "another";
  registry.add(another);
  CHECK_THROWS_WITH_AS(registry.make("median", {}),
                       "unknown interpolation method 'median'; accepted: another, zero",
                       std::invalid_argument);
}

TEST_CASE("an unknown parameter is refused with those that the method accepts") {
  const dpwa::InterpolationRegistry& registry = dpwa::interpolation_registry();
  CHECK_THROWS_WITH_AS(registry.make("linear", {{"begin", 0}}),
                       "interpolation method 'linear' has no parameter 'begin'; accepted: start, "
                       "end, target",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      registry.make("loss", {{"value", 0.5}}),
      "interpolation method 'loss' has no parameter 'value'; accepted: no parameters",
      std::invalid_argument);
}

TEST_CASE("a parameter outside its range is refused with the range") {
  const dpwa::InterpolationRegistry& registry = dpwa::interpolation_registry();
  CHECK_THROWS_WITH_AS(
      registry.make("constant", {{"value", 1.5}}),
      "parameter 'value' of interpolation method 'constant' is 1.5; accepted: 0 to 1",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      registry.make("linear", {{"target", 0}}),
      "parameter 'target' of interpolation method 'linear' is 0; accepted: at least 1",
      std::invalid_argument);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(registry.make("constant", {{"value", nan}}), std::invalid_argument);
  CHECK_THROWS_AS(registry.make("loss_divergence", {{"target", 0}}), std::invalid_argument);
  CHECK_NOTHROW(registry.make("constant", {{"value", 0}}));
  CHECK_NOTHROW(registry.make("constant", {{"value", 1}}));
}

TEST_CASE("the maker receives defaults for what is not given") {
  dpwa::InterpolationRegistry registry;
  dpwa::InterpolationParameters received;
  dpwa::InterpolationMethod method = zero_method();
  method.parameters = {{.name = "a", .default_value = 1}, {.name = "b", .default_value = 2}};
  method.make = [&](const dpwa::InterpolationParameters& given) {
    received = given;
    return std::make_unique<Zero>();
  };
  registry.add(method);
  registry.make("zero", {{"b", 5}});
  CHECK(received == dpwa::InterpolationParameters{{"a", 1}, {"b", 5}});
}

TEST_CASE("a method that is taken, nameless, without a maker or inconsistent is not added") {
  dpwa::InterpolationRegistry registry;
  registry.add(zero_method());
  CHECK_THROWS_WITH_AS(registry.add(zero_method()),
                       "interpolation method 'zero' is already registered", std::invalid_argument);
  dpwa::InterpolationMethod nameless = zero_method();
  nameless.name.clear();
  CHECK_THROWS_AS(registry.add(nameless), std::invalid_argument);
  CHECK_THROWS_AS(registry.add({.name = "no_maker", .parameters = {}, .make = nullptr}),
                  std::invalid_argument);
  dpwa::InterpolationMethod twice = zero_method();
  twice.name = "twice";
  twice.parameters = {{.name = "a"}, {.name = "a"}};
  CHECK_THROWS_AS(registry.add(twice), std::invalid_argument);
  dpwa::InterpolationMethod outside = zero_method();
  outside.name = "outside";
  outside.parameters = {{.name = "a", .default_value = 2, .minimum = 0, .maximum = 1}};
  CHECK_THROWS_AS(registry.add(outside), std::invalid_argument);
  CHECK(registry.names() == std::vector<std::string>{"zero"});
}

TEST_CASE("a policy that a program adds is made by name like a built-in one") {
  dpwa::InterpolationRegistry& registry = dpwa::interpolation_registry();
  if (!registry.find("capped_clock")) registry.add(capped_clock_method());

  const auto by_default = registry.make("capped_clock", {});
  CHECK(by_default->factor({.clock = 1, .peer_clock = 3}) == 0.5);
  const auto given = registry.make("capped_clock", {{"cap", 0.7}});
  CHECK(given->factor({.clock = 1, .peer_clock = 3}) == 0.7);
  CHECK(given->factor({.clock = 3, .peer_clock = 1}) == 0.25);

  const dpwa::GuardedInterpolation guarded(registry.make("capped_clock", {}), 0.1);
  CHECK(guarded.factor({}).fallback);  // 0/0
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(guarded.factor({.clock = 1, .peer_clock = 1, .loss = nan}).fallback);

  CHECK_THROWS_WITH_AS(
      registry.make("capped_clock", {{"cap", 2}}),
      "parameter 'cap' of interpolation method 'capped_clock' is 2; accepted: 0 to 1",
      std::invalid_argument);
}

TEST_CASE("the example of docs/INTERPOLATION.md is the policy that is tested here") {
  const std::string example = read("test/interpolation/capped_clock.cpp");
  REQUIRE_FALSE(example.empty());
  CHECK(read("docs/INTERPOLATION.md").find(example) != std::string::npos);
}
