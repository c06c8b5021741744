#include "examples/train/report.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "examples/train/plan.h"
#include "test/support/temporary_directory.h"

using namespace dpwa;
using namespace dpwa::train;
using dpwa::test::has;

TEST_CASE("a result has the promised keys, and null for what is absent or not finite") {
  RunResult result;
  result.identity.node = "w1";
  result.identity.data = "mnist";
  result.backend = Backend::gossip;
  result.own = Evaluation{0.97, std::numeric_limits<double>::quiet_NaN()};
  auto json = nlohmann::json::parse(to_json(result));
  for (const char* key :
       {"schema",        "node",           "dataset",         "split",          "model",
        "seed",          "backend",        "test_accuracy",   "test_loss",      "steps",
        "samples",       "clock",          "pulls_ok",        "pulls_failed",   "waited_ms_total",
        "waited_ms_max", "step_ms_median", "bytes_received",  "averaged_model", "train_seconds",
        "steps_made",    "bytes_sent",     "lost_final_model"})
    CHECK_MESSAGE(json.contains(key), key);
  CHECK(json["schema"] == 1);
  CHECK(json["backend"] == "gossip");
  CHECK(json["test_accuracy"] == 0.97);
  CHECK(json["test_loss"].is_null());
  CHECK(json["step_ms_median"].is_null());
  CHECK(json["averaged_model"].is_null());

  result.averaged = AveragedModel{Evaluation{0.98, 0.1}, 4, 2.5};
  json = nlohmann::json::parse(to_json(result));
  CHECK(json["averaged_model"] ==
        nlohmann::json{
            {"test_accuracy", 0.98}, {"test_loss", 0.1}, {"participants", 4}, {"distance", 2.5}});
}

TEST_CASE("the result of a run that had ended stays when a later process trained nothing") {
  RunResult trained;
  trained.identity.node = "w1";
  trained.position.step = 20;
  trained.steps.steps = 20;
  RunResult again = trained;
  again.steps.steps = 0;
  const auto text_of = [](const RunResult& earlier, const RunResult& now, std::uint64_t steps) {
    const auto found = earlier_result(to_json(earlier), now, steps);
    return found ? found->text : "";
  };
  CHECK(text_of(trained, again, 20) == to_json(trained));
  CHECK(text_of(trained, trained, 20).empty());
  CHECK_FALSE(earlier_result("", again, 20));
  CHECK_FALSE(earlier_result("[1]", again, 20));
  again.position.step = 15;  // it was told another length
  CHECK(text_of(trained, again, 15) == to_json(trained));
  again.position.step = 21;
  CHECK(text_of(trained, again, 21).empty());
  again.position.step = 20;
  trained.averaged = again.averaged = AveragedModel{};
  CHECK(text_of(trained, again, 20) == to_json(trained));
  for (const auto& spoil : std::vector<std::function<void(RunResult&)>>{
           [](RunResult& r) { r.position.step = 19; }, [](RunResult& r) { r.interrupted = true; },
           [](RunResult& r) { r.identity.node = "w2"; }}) {
    RunResult other = trained;
    spoil(other);
    CHECK(text_of(other, again, 20).empty());
  }
  again.interrupted = true;  // while it waited for others
  CHECK(text_of(trained, again, 20) == to_json(trained));
  CHECK(text_of(trained, again, 30).empty());  // it was told of a longer run
}

TEST_CASE("a later process that trained nothing adds the final model to a result without one") {
  RunResult trained;
  trained.position.step = trained.position.samples = 20;
  trained.steps.steps = 20;
  RunResult again;
  again.position.step = 20;
  bool lost = false;
  SUBCASE("the servers had not given it") {
    lost = true;
  }
  SUBCASE("it ended alone") {}
  trained.lost_final_model = lost;
  auto earlier = earlier_result(to_json(trained), again, 20);
  REQUIRE(earlier);
  CHECK(earlier->text == to_json(trained));
  CHECK(earlier->lacks_final_model == lost);

  again.averaged = trained.averaged = AveragedModel{Evaluation{0.98, 0.1}, 0, 0};
  trained.lost_final_model = false;
  RunResult former = trained;
  former.averaged.reset();
  former.lost_final_model = lost;
  earlier = earlier_result(to_json(former), again, 20);
  REQUIRE(earlier);
  CHECK(earlier->text == to_json(trained));
  CHECK_FALSE(earlier->lacks_final_model);
  CHECK(nlohmann::json::parse(earlier->text)["averaged_model"]["participants"].is_null());
}

TEST_CASE("step statistics sum, take the greatest and the median") {
  StepStatistics statistics;
  for (const double ms : {5.0, 1.0, 100.0, 2.0, 3.0}) {
    StepReport report;
    report.bytes = 10;
    report.waited = std::chrono::microseconds(static_cast<int>(ms * 1000));
    report.pulls_ok = 7;
    report.pulls_failed = 1;
    statistics.add(report, ms);
  }
  const auto summary = statistics.summary();
  CHECK(summary.step_ms_median == 3);
  CHECK(summary.step_ms_max == 100);
  CHECK(summary.waited_ms_total == doctest::Approx(111));
  CHECK(summary.waited_ms_max == doctest::Approx(100));
  CHECK(summary.bytes_received == 50);
  CHECK(summary.pulls_ok == 7);
  CHECK(summary.pulls_failed == 1);
}

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

TEST_CASE("a step with servers says what became of its gradients, and nothing of pulls") {
  const auto words = [](Outcome outcome) {
    Shown shown;
    ProgressLine progress("w1", 100, false, shown.file);
    StepReport report;
    report.outcome = outcome;
    report.participants = outcome == Outcome::averaged ? 3 : 1;
    report.sent = 100;
    report.waited = std::chrono::microseconds(1250);
    progress.step(7, 0.5, report, shown.start);
    return shown.words();
  };
  const std::string begin = "w1  step 7/100  loss 0.5000  clock 0.0  ";
  CHECK(words(Outcome::averaged) == begin + "averaged over 3 workers  waited 1.2 ms\n");
  CHECK(words(Outcome::updated) == begin + "updated by the servers  waited 1.2 ms\n");
  CHECK(words(Outcome::dropped) == begin + "dropped: its gradients did not count  waited 1.2 ms\n");
  CHECK(words(Outcome::rejected) ==
        begin + "rejected: its gradients are not finite  waited 1.2 ms\n");
  CHECK(words(Outcome::skipped) == begin + "alone, no other worker  waited 1.2 ms\n");
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

TEST_CASE("a line for a narrow terminal ends behind a whole field") {
  const std::string line = "w1  step 7/100  loss 0.5000  waited 1.2 ms";
  CHECK(fit_line(line, 42) == line);
  CHECK(fit_line(line, 41) == "w1  step 7/100  loss 0.5000");
  CHECK(fit_line(line, 27) == "w1  step 7/100  loss 0.5000");
  CHECK(fit_line(line, 26) == "w1  step 7/100");
  CHECK(fit_line(line, 3) == "w1");
  CHECK(fit_line(line, 1) == "w1");
  CHECK(fit_line("evaluating", 5) == "evaluating");
}

TEST_CASE("a quiet run shows no progress of either kind") {
  const Shown shown;
  ProgressLine progress("w1", 100, true, shown.file);
  progress.step(7, 0.5, {}, shown.start);
  progress.work("evaluating", 0, 1000, shown.start);
  progress.work("evaluating", 10, 1000, shown.start + std::chrono::minutes(1));
  CHECK(shown.words().empty());
}

namespace {

// The steps at which a run with these losses is told that it learns nothing.
std::vector<int> told_at(int steps, const std::function<double(int)>& loss) {
  LossWatch watch(10, static_cast<std::uint64_t>(steps), "look");
  std::vector<int> told;
  for (int step = 1; step <= steps; ++step) {
    if (watch.see(loss(step))) told.push_back(step);
  }
  return told;
}

const double guess = std::log(10.0);

}  // namespace

TEST_CASE("a loss that stays at chance, or above it, is told once, at half of the run at most") {
  CHECK(told_at(260, [](int) { return guess; }) == std::vector<int>{130});
  CHECK(told_at(260, [](int) { return 1e6; }) == std::vector<int>{130});
  CHECK(told_at(100'000, [](int) { return guess; }) == std::vector<int>{500});
  CHECK(told_at(100, [](int) { return guess; }) == std::vector<int>{100});
}

TEST_CASE("a loss that falls back to chance is told") {
  const auto dies = [](int step) { return step <= 1000 ? 0.5 : 2.31; };
  CHECK(told_at(4000, dies) == std::vector<int>{1250});
}

TEST_CASE("a run that learns, that has just begun, or is too short to tell, is told nothing") {
  CHECK(told_at(1000, [](int step) { return step < 200 ? guess : 1.9; }).empty());
  CHECK(told_at(1000, [](int step) { return step % 2 == 0 ? 2.6 : 1.4; }).empty());
  CHECK(told_at(99, [](int) { return guess; }).empty());
}

TEST_CASE("the line of a loss at chance has both losses and where to look") {
  LossWatch watch(10, 1, "look at the labels");
  std::string line;
  for (int step = 0; step < 100; ++step) line += watch.see(2.31).value_or("");
  CHECK(line ==
        "the loss of the last 50 steps is 2.31, and 2.30 is that of guessing: nothing is learnt; "
        "look at the labels");
}

TEST_CASE("where to look is the rate of all workers together where each push is an update") {
  TrainOptions options;
  options.lr = 0.03;
  options.lr_given = true;
  Config config;
  config.nodes.resize(12);
  CHECK(where_to_look(options, config) ==
        "--lr 0.03: try another one, and look at the data and its labels");
  config.backend = Backend::kvstore;
  CHECK(has(where_to_look(options, config), "try another one"));
  config.kvstore.type = KvstoreType::dist_async;
  CHECK(where_to_look(options, config) ==
        "--lr 0.03: with kvstore.type dist_async each of the 12 workers makes whole updates of its "
        "own; try 0.0025");
  config.nodes.resize(7);
  CHECK(where_to_look(options, config).ends_with("; try 0.0043"));
  options.lr_given = false;  // it is divided already
  CHECK(has(where_to_look(options, config), "try another one"));
}
