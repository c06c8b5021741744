#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "examples/train/metrics_writer.h"
#include "test/support/full_disk.h"
#include "test/support/temporary_directory.h"

using namespace dpwa;
using train::MetricsWriter;

namespace {

const TimePoint start = TimePoint() + std::chrono::hours(1);

std::vector<nlohmann::json> lines_of(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(test::read_text(file));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

StepReport mixed_report() {
  StepReport report;
  report.outcome = Outcome::mixed;
  report.peer = "w2";
  report.factor = 0.5;
  report.staleness = -1.5;
  report.bytes = 407080;
  report.waited = std::chrono::microseconds(250);
  report.computed = std::chrono::microseconds(2500);
  report.published = std::chrono::microseconds(250);
  report.blended = std::chrono::microseconds(125);
  report.clock = 41.25;
  report.distance = 3.5;
  report.pulls_ok = 40;
  report.pulls_failed = 2;
  return report;
}

std::vector<int> steps_of(const std::filesystem::path& file) {
  std::vector<int> steps;
  for (const auto& line : lines_of(file)) steps.push_back(line.at("step"));
  return steps;
}

}  // namespace

TEST_CASE("a step and an evaluation are JSON lines with the promised keys") {
  const test::TemporaryDirectory directory;
  {
    MetricsWriter writer(directory / "m.jsonl", false);
    writer.step(1.5, 42, 0.1F, 0.03, 3.125, mixed_report(), start);
    writer.evaluation(2, 42, 0.9707, 0.25);
  }
  auto lines = lines_of(directory / "m.jsonl");
  REQUIRE(lines.size() == 2);
  for (auto& line : lines) {
    CHECK(line.at("wall") > 1.6e9);  // seconds since 1970
    line.erase("wall");
  }
  CHECK(lines[0] == nlohmann::json::parse(R"({"t": 1.5, "step": 42, "loss": 0.1, "clock": 41.25,
    "outcome": "mixed", "peer": "w2", "factor": 0.5, "staleness": -1.5, "distance": 3.5,
    "waited_ms": 0.25, "step_ms": 3.125, "compute_ms": 2.5, "publish_ms": 0.25,
    "blend_ms": 0.125, "bytes": 407080, "transport": "tcp",
    "pulls_ok": 40, "pulls_failed": 2, "lr": 0.03})"));
  CHECK(lines[1] == nlohmann::json::parse(
                        R"({"t": 2, "step": 42, "test_accuracy": 0.9707, "test_loss": 0.25})"));
}

TEST_CASE("what the firewall did to a step is in its line, and only then") {
  const test::TemporaryDirectory directory;
  {
    MetricsWriter writer(directory / "m.jsonl", false);
    StepReport report = mixed_report();
    report.clipped = true;
    report.refused = 2;
    writer.step(1, 1, 0.1F, 0.03, 1, report, start);
    writer.step(2, 2, 0.1F, 0.03, 1, mixed_report(), start);
  }
  const auto lines = lines_of(directory / "m.jsonl");
  CHECK(lines.at(0).at("clipped") == 1);
  CHECK(lines.at(0).at("refused") == 2);
  CHECK_FALSE(lines.at(1).contains("clipped"));
  CHECK_FALSE(lines.at(1).contains("refused"));
}

TEST_CASE("a step that blended nothing has null for what only a blend has") {
  const test::TemporaryDirectory directory;
  const std::vector<Outcome> without = {Outcome::skipped, Outcome::pending, Outcome::unreachable,
                                        Outcome::averaged, Outcome::stale};
  {
    MetricsWriter writer(directory / "m.jsonl", false);
    for (const Outcome outcome : without) {
      StepReport report;
      report.outcome = outcome;
      if (outcome == Outcome::stale) report.peer = "w3";
      writer.step(1, 1, 0.1F, 0.03, 1, report, start);
    }
  }
  const auto lines = lines_of(directory / "m.jsonl");
  REQUIRE(lines.size() == without.size());
  for (const auto& line : lines) {
    CAPTURE(line.dump());
    for (const char* key : {"factor", "staleness", "distance"}) CHECK(line.at(key).is_null());
    CHECK(line.at("peer") == (line.at("outcome") == "stale" ? nlohmann::json("w3") : nullptr));
    CHECK(line.at("waited_ms") == 0);  // a value
    CHECK(line.at("compute_ms").is_null());
    CHECK(line.at("bytes") == 0);
  }
}

TEST_CASE("numbers that are not finite become null") {
  const test::TemporaryDirectory directory;
  {
    MetricsWriter writer(directory / "m.jsonl", false);
    StepReport report = mixed_report();
    report.staleness = std::numeric_limits<double>::infinity();
    writer.step(0, 1, std::numeric_limits<double>::quiet_NaN(), 0.03, 1, report, start);
  }
  const auto line = lines_of(directory / "m.jsonl").at(0);
  CHECK(line.at("loss").is_null());
  CHECK(line.at("staleness").is_null());
}

TEST_CASE("steps reach the file after 0.4 s at the latest, as complete lines") {
  using std::chrono::milliseconds;
  const test::TemporaryDirectory directory;
  const auto file = directory / "m.jsonl";
  MetricsWriter writer(file, false);
  writer.step(0, 1, 1, 0.03, 1, {}, start);
  CHECK(lines_of(file).size() == 1);
  writer.step(0, 2, 1, 0.03, 1, {}, start + milliseconds(200));
  writer.step(0, 3, 1, 0.03, 1, {}, start + milliseconds(399));
  CHECK(lines_of(file).size() == 1);
  writer.step(0, 4, 1, 0.03, 1, {}, start + milliseconds(400));
  CHECK(lines_of(file).size() == 4);
  CHECK(test::read_text(file).back() == '\n');
}

TEST_CASE("a resumed run goes on after the last complete line, a new one starts afresh") {
  const test::TemporaryDirectory directory;
  const auto file = directory / "m.jsonl";
  test::write_text(file, "{\"step\": 1}\n{\"step\": 2}\n{\"ste");
  { MetricsWriter(file, true).evaluation(0, 3, 0.5, 1); }
  REQUIRE(lines_of(file).size() == 3);
  CHECK(lines_of(file)[2].at("step") == 3);
  for (const char* const kept : {"m.1.jsonl", "m.2.jsonl"}) {
    const std::string lines = test::read_text(file);
    { MetricsWriter(file, false).evaluation(0, 4, 0.5, 1); }
    CHECK(lines_of(file).size() == 1);
    CHECK(test::read_text(directory / kept) == lines);
  }
}

TEST_CASE("a metrics file stays as it is until there is a line, or the run has ended without one") {
  const test::TemporaryDirectory directory;
  const auto file = directory / "m.jsonl";
  test::write_text(file, "{\"step\": 1}\n");
  { const MetricsWriter refused(file, false); }
  CHECK(lines_of(file).size() == 1);
  CHECK(MetricsWriter(file, false).close());
  CHECK(lines_of(file).empty());
}

TEST_CASE("a metrics file that cannot be opened is refused before anything starts") {
  const test::TemporaryDirectory directory;
  const auto why =
      test::message_of<ConfigError>([&] { MetricsWriter(directory / "none" / "m.jsonl", false); });
  CHECK(test::has(why, "--run-dir: "));
  CHECK(test::has(why, "m.jsonl: No such file"));
}

TEST_CASE(
    "a full disk leaves whole lines in the file, and those that wait follow once there is room") {
  const test::TemporaryDirectory directory;
  const auto file = directory / "m.jsonl";
  MetricsWriter writer(file, false);
  {
    const test::FullDisk full(1000);  // in the midst of a line
    for (int i = 1; i <= 10; ++i) writer.step(0, i, 0.5, 0.03, 1, mixed_report(), start);
    writer.flush();
    const auto steps = steps_of(file);  // throws on half a line
    CHECK(steps.size() > 1);
    CHECK(steps.size() < 10);
    writer.flush();
    CHECK(steps_of(file) == steps);
  }
  writer.step(0, 11, 0.5, 0.03, 1, mixed_report(), start + std::chrono::seconds(6));
  CHECK(steps_of(file) == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(writer.close());
}

TEST_CASE("lines that a full disk took to the end are counted as lost, and whole lines are left") {
  const test::TemporaryDirectory directory;
  const auto file = directory / "m.jsonl";
  MetricsWriter writer(file, false);
  {
    const test::FullDisk full(1000);
    for (int i = 1; i <= 10; ++i) writer.step(0, i, 0.5, 0.03, 1, mixed_report(), start);
    CHECK_FALSE(writer.close());
  }
  CHECK(lines_of(file).size() > 1);
}

TEST_CASE("lines beyond what may wait in memory are lost, the latest first") {
  const test::TemporaryDirectory directory;
  const auto file = directory / "m.jsonl";
  MetricsWriter writer(file, false);
  TimePoint now = start;
  {
    const test::FullDisk full(1000);
    for (int i = 1; i <= 40'000; ++i)
      writer.step(0, i, 0.5, 0.03, 1, mixed_report(), now += std::chrono::milliseconds(100));
  }
  writer.step(0, 40'001, 0.5, 0.03, 1, mixed_report(), now + std::chrono::seconds(6));
  const auto steps = steps_of(file);
  CHECK(std::filesystem::file_size(file) > 4'000'000);
  CHECK(std::filesystem::file_size(file) < 4'300'000);
  CHECK(steps.back() == 40'001);
  REQUIRE(steps.size() > 10'000);
  CHECK(steps[9999] == 10'000);  // and so none before it is missing
  CHECK_FALSE(writer.close());
}
