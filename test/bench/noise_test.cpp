#include "bench/measure/noise.h"

#include <doctest/doctest.h>

using namespace dpwa::bench;

TEST_CASE("the time of all processors is read from the first line of /proc/stat") {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const ProcessorTime time =
      parse_processor_time("cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n", 100);
  CHECK(time.busy == doctest::Approx(1.7));
  CHECK(time.steal == doctest::Approx(0.1));
  CHECK(time.total == doctest::Approx(10));
}

TEST_CASE("a /proc/stat of another form gives no time") {
  for (const char* text : {"", "intr 1 2 3\n", "cpu 1 2 3\n", "cpu a b c d e f g h\n"}) {
    CAPTURE(text);
    CHECK(parse_processor_time(text, 100).total == 0);
  }
}

TEST_CASE("a quiet machine gives no reason to doubt") {
  const Noise noise = judge_noise(0.1, {10, 0, 100}, {12, 0.01, 104}, 1.9);
  CHECK(noise.reasons.empty());
  CHECK(noise.other_load == doctest::Approx(0.025));
}

TEST_CASE("windows that differ, other work and steal are told apart") {
  CHECK(judge_noise(0.2, {}, {}, 0).reasons.size() == 1);
  CHECK(judge_noise(0, {10, 0, 100}, {13, 0, 104}, 1).reasons.size() == 1);
  CHECK(judge_noise(0, {10, 0, 100}, {11, 1, 104}, 1).reasons.size() == 1);
  CHECK(judge_noise(0.2, {10, 0, 100}, {13, 1, 104}, 1).reasons.size() == 3);
}

TEST_CASE("more processor time of our own than the machine counted is no load of others") {
  CHECK(judge_noise(0, {10, 0, 100}, {11, 0, 104}, 2).other_load == 0);
}
