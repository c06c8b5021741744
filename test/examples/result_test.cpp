#include "examples/train/result.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

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
       {"schema",        "node",           "dataset",        "split",          "model",
        "seed",          "backend",        "test_accuracy",  "test_loss",      "steps",
        "samples",       "clock",          "pulls_ok",       "pulls_failed",   "waited_ms_total",
        "waited_ms_max", "step_ms_median", "bytes_received", "averaged_model", "train_seconds"})
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
