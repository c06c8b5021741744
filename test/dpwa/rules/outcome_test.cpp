#include "dpwa/rules/outcome.h"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

using dpwa::Outcome;

TEST_CASE("every outcome has a name of its own") {
  std::set<std::string_view> names;
  for (const Outcome outcome : {Outcome::skipped, Outcome::pending, Outcome::mixed,
                                Outcome::timed_out, Outcome::unreachable, Outcome::busy,
                                Outcome::not_ready, Outcome::stale, Outcome::rejected}) {
    names.insert(to_string(outcome));
  }
  CHECK(names.size() == 9);
  CHECK(names.count("unknown") == 0);
}
