#include "examples/train/progress_line.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace dpwa;
using namespace dpwa::train;
using std::chrono::milliseconds;

namespace {

// A progress line into memory, which is no terminal: a line every 10 s.
struct Shown {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  const TimePoint start = TimePoint() + std::chrono::hours(1);

  Shown() = default;
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;
  ~Shown() {
    std::fclose(file);
    std::free(text);
  }
  std::string words() const {
    std::fflush(file);
    return {text, size};
  }
};

}  // namespace

TEST_CASE("work beside the steps tells how far it is once it has lasted a while") {
  const Shown shown;
  ProgressLine progress("w1", 100, false, shown.file);
  const auto at = [&](int ms) { return shown.start + milliseconds(ms); };
  progress.work("evaluating", 0, 1000, at(0));
  progress.work("evaluating", 100, 1000, at(9999));
  CHECK(shown.words().empty());
  progress.work("evaluating", 200, 1000, at(10000));
  CHECK(shown.words() == "w1  evaluating: 200 of 1000 samples\n");
  progress.work("evaluating", 300, 1000, at(19999));
  progress.work("evaluating", 400, 1000, at(20000));
  CHECK(shown.words() ==
        "w1  evaluating: 200 of 1000 samples\nw1  evaluating: 400 of 1000 samples\n");
}

TEST_CASE("a step whose gradients were averaged says over how many nodes, and nothing of pulls") {
  const Shown shown;
  ProgressLine progress("w1", 100, false, shown.file);
  StepReport report;
  report.outcome = Outcome::averaged;
  report.participants = 3;
  report.clock = 7;
  progress.step(7, 0.5, report, shown.start);
  progress.step(8, 0.5, report, shown.start + milliseconds(9999));
  CHECK(shown.words() == "w1  step 7/100  loss 0.5000  clock 7.0  averaged over 3 nodes\n");
}

TEST_CASE("work and steps share the rate, and each begins of its own") {
  const Shown shown;
  ProgressLine progress("w1", 100, false, shown.file);
  const auto at = [&](int ms) { return shown.start + milliseconds(ms); };
  progress.step(7, 0.5, {}, at(0));
  CHECK(shown.words().starts_with("w1  step 7/100  loss 0.5000  clock 0.0  pulls 0 ok 0 failed  "));
  const std::size_t first = shown.words().size();
  progress.work("evaluating", 0, 10, at(9500));  // short ones, time and again
  progress.work("evaluating", 10, 10, at(9600));
  progress.step(8, 0.5, {}, at(10000));  // are in no step's way
  CHECK(shown.words().find("step 8/100") != std::string::npos);
  CHECK(shown.words().find("evaluating") == std::string::npos);
  CHECK(shown.words().size() > first);
}

TEST_CASE("a quiet run shows no progress of either kind") {
  const Shown shown;
  ProgressLine progress("w1", 100, true, shown.file);
  progress.step(7, 0.5, {}, shown.start);
  progress.work("evaluating", 0, 1000, shown.start);
  progress.work("evaluating", 10, 1000, shown.start + std::chrono::minutes(1));
  CHECK(shown.words().empty());
}
