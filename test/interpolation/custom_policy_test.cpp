#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "interpolation/guarded.h"
#include "test/interpolation/capped_clock.h"

namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(DPWA_SOURCE_DIR) + "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

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
