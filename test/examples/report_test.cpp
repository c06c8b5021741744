#include "examples/train/report.h"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace dpwa;
using namespace dpwa::train;

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
