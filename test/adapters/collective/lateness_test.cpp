#include "adapters/collective/patience.h"

#include <doctest/doctest.h>

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;
using View = Lateness::View;

constexpr Lateness::Options options{60s, 10s};

View waiting(const std::string& name) {
  return {name, true, false, true};
}
View working(const std::string& name) {
  return {name, true, false, false};
}
View silent(const std::string& name) {
  return {name, false, false, false};
}
View refusing(const std::string& name) {
  return {name, false, true, false};
}

}  // namespace

TEST_CASE("a rank that answers is named once after a while, and lost after a long one alone") {
  Lateness lateness(options);
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 9s, 5s).late.empty());
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 10s, 5s).late ==
        std::vector<std::string>{"w2"});
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 11s, 5s).late.empty());
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 59s, 5s).lost.empty());
  const auto verdict = lateness.judge({working("w2"), waiting("w3")}, 60s, 5s);
  CHECK(verdict.lost == "w2");
  CHECK(verdict.why == "answers, but has not come for 60.0 s");
}

TEST_CASE("a rank that is silent without a break is lost, and one that answers again is not") {
  Lateness lateness(options);
  CHECK(lateness.judge({silent("w2")}, 1s, 5s).lost.empty());
  CHECK(lateness.judge({silent("w2")}, 5s, 5s).lost.empty());
  CHECK(lateness.judge({working("w2")}, 5500ms, 5s).lost.empty());
  CHECK(lateness.judge({silent("w2")}, 6s, 5s).lost.empty());
  CHECK(lateness.judge({silent("w2")}, 10s, 5s).lost.empty());
  CHECK(lateness.judge({silent("w2")}, 11s, 5s).lost == "w2");
}

TEST_CASE("a rank where nothing listens is lost at the second look in a row") {
  Lateness lateness(options);
  CHECK(lateness.judge({refusing("w2"), waiting("w3")}, 1s, 5s).lost.empty());
  CHECK(lateness.judge({waiting("w2"), waiting("w3")}, 1500ms, 5s).lost.empty());
  CHECK(lateness.judge({refusing("w2"), waiting("w3")}, 2s, 5s).lost.empty());
  const auto verdict = lateness.judge({refusing("w2"), waiting("w3")}, 2500ms, 5s);
  CHECK(verdict.lost == "w2");
  CHECK(verdict.why == "is not running any more");
}

TEST_CASE("a wait that ended leaves nothing for the next") {
  Lateness lateness(options);
  CHECK(lateness.judge({refusing("w2"), silent("w3")}, 6s, 5s).lost.empty());
  lateness.reset();
  CHECK(lateness.judge({refusing("w2"), silent("w3")}, 1s, 5s).lost.empty());
}

TEST_CASE("zero switches off the word and the loss of ranks that answer") {
  Lateness lateness({0s, 0s});
  const auto verdict = lateness.judge({working("w2")}, 10h, 5s);
  CHECK(verdict.late.empty());
  CHECK(verdict.lost.empty());
}

}  // namespace dpwa::collective
