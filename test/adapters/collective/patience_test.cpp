#include "adapters/collective/patience.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

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

TEST_CASE("how long a wait may last is learned from the waits of the run") {
  Patience patience(0s);
  CHECK(patience.before_looking() == 1s);
  for (int i = 0; i < 64; ++i) patience.waited(i % 2 == 0 ? 4ms : 6ms);
  CHECK(patience.before_looking() == 100ms);
  for (int i = 0; i < 64; ++i) patience.waited(i % 2 == 0 ? 100ms : 140ms);
  CHECK(patience.before_looking() > 200ms);
  CHECK(patience.before_looking() < 500ms);
  for (int i = 0; i < 64; ++i) patience.waited(10s);
  CHECK(patience.before_looking() == 2s);
}

TEST_CASE("one long wait among many changes little") {
  Patience patience(0s);
  for (int i = 0; i < 63; ++i) patience.waited(std::chrono::milliseconds(30 + i % 3));
  patience.waited(5s);
  CHECK(patience.before_looking() < 150ms);
}

TEST_CASE("how long a silent node is waited for is learned from answers, unless it is given") {
  Patience learned(0s);
  CHECK(learned.before_lost() == 2s);
  for (int i = 0; i < 10; ++i) learned.answered(5ms);
  CHECK(learned.before_lost() == 2s);
  for (int i = 0; i < 64; ++i) learned.answered(500ms);
  CHECK(learned.before_lost() == 5s);
  Patience given(700ms);
  given.answered(500ms);
  CHECK(given.before_lost() == 700ms);
  CHECK(given.of_a_look() < 250ms);
  CHECK(learned.of_a_look() == 1s);
}

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
  CHECK(verdict.why == "is no longer running");
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
