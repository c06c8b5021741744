#include "adapters/collective/patience.h"

#include <doctest/doctest.h>

namespace dpwa::collective {

using namespace std::chrono_literals;

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

}  // namespace dpwa::collective
