#include "dpwa/base/wait_lines.h"

#include <doctest/doctest.h>

using namespace dpwa;
using namespace std::chrono_literals;

TEST_CASE("a wait that goes on has a line soon and then rarely") {
  WaitLines lines;
  const TimePoint began = TimePoint{} + 1h;
  CHECK_FALSE(lines.due(began, began));
  CHECK_FALSE(lines.due(began, began + 1999ms));
  CHECK(lines.due(began, began + 2s));
  CHECK_FALSE(lines.due(began, began + 31s));
  CHECK(lines.due(began, began + 32s));
  CHECK(lines.due(began, began + 100s));
  CHECK_FALSE(lines.due(began, began + 129s));
}

TEST_CASE("each wait counts from its own beginning") {
  WaitLines lines;
  const TimePoint began = TimePoint{} + 1h;
  CHECK(lines.due(began, began + 10s, 10s, 10s));
  const TimePoint next = began + 11s;
  CHECK_FALSE(lines.due(next, next + 9s, 10s, 10s));
  CHECK(lines.due(next, next + 10s, 10s, 10s));
  CHECK_FALSE(lines.due(next, next + 19s, 10s, 10s));
  CHECK(lines.due(next, next + 20s, 10s, 10s));
}

TEST_CASE("the words for a wait state its time so far and, where it has one, its end") {
  const TimePoint began = TimePoint{} + 1h;
  CHECK(words_for_wait(began, TimePoint::max(), began + 2999ms) == "2 s so far");
  CHECK(words_for_wait(began, began + 59500ms, began + 12s) == "12 s so far and 60 s at most");
}

TEST_CASE("a wait has a line soon, when its reason changes, and each minute") {
  const TimePoint began = TimePoint{} + 1h;
  WaitReasons reasons(began);
  CHECK_FALSE(reasons.due("b is missing", began + 1999ms));
  CHECK_FALSE(reasons.due("", began + 3s));
  CHECK(reasons.due("b is missing", began + 3s));
  CHECK_FALSE(reasons.due("b is missing", began + 62s));
  CHECK(reasons.due("b is missing", began + 63s));
  CHECK_FALSE(reasons.due("c is missing", began + 64s));
  CHECK(reasons.due("c is missing", began + 65s));
  CHECK_FALSE(reasons.due("c is missing", began + 100s));
}
