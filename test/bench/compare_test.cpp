#include "bench/compare/compare.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dpwa::bench;

namespace {

Json pull(double gb_per_s, double spread, std::uint64_t bytes = 1000) {
  return {
      {"kind", "pull"},
      {"bytes", bytes},
      {"transport", "tcp"},
      {"gb_per_s", gb_per_s},
      {"latency_us", {{"median", 100 / gb_per_s}, {"p99", 1000}}},
      {"windows",
       {{"count", 3},
        {"gb_per_s", {{"min", gb_per_s - spread}, {"max", gb_per_s + spread}}},
        {"latency_us", {{"min", 100 / (gb_per_s + spread)}, {"max", 100 / (gb_per_s - spread)}}}}},
      {"settings", {{"gb_per_s", 7}}}};
}

const Comparison& row(const std::vector<Comparison>& rows, const std::string& end) {
  const auto found =
      std::ranges::find_if(rows, [&](const Comparison& one) { return one.label.ends_with(end); });
  REQUIRE(found != rows.end());
  return *found;
}

}  // namespace

TEST_CASE("steps of another model are another measurement, and those of a peer are none") {
  const auto steps = [](const char* model, double step_us) {
    return Json{{"kind", "collective"},
                {"model", model},
                {"nodes", 2},
                {"dpwa", {{"step_us", {{"median", step_us}, {"p99", step_us}}}}},
                {"ddp", {{"step_us", {{"median", 1}, {"p99", 1}}}}},
                {"ratio_to_ddp", {{"min", step_us}, {"median", step_us}, {"max", step_us}}}};
  };
  const auto rows = compare(steps("mlp", 100), steps("mlp", 200), 0.9);
  REQUIRE(rows.size() == 2);
  CHECK(row(rows, "dpwa: step_us").worse);
  CHECK(row(rows, ": ratio_to_ddp").worse);
  CHECK(compare(steps("mlp", 100), steps("resnet18", 200), 0.9).empty());
}

TEST_CASE("a document is as good as itself") {
  const auto rows = compare(pull(5, 0.1), pull(5, 0.1), 0.9);
  CHECK(rows.size() == 2);
  for (const Comparison& one : rows) {
    CHECK(one.ratio == 1);
    CHECK_FALSE(one.worse);
  }
}

TEST_CASE("less throughput and more latency are worse, the other way round is not") {
  const auto slower = compare(pull(5, 0.1), pull(4, 0.1), 0.9);
  CHECK(row(slower, "gb_per_s").ratio == doctest::Approx(0.8));
  CHECK(row(slower, "gb_per_s").worse);
  CHECK(row(slower, "latency_us").ratio == doctest::Approx(0.8));
  CHECK(row(slower, "latency_us").worse);
  for (const Comparison& one : compare(pull(4, 0.1), pull(5, 0.1), 0.9)) {
    CHECK(one.ratio == doctest::Approx(1.25));
    CHECK_FALSE(one.worse);
  }
}

TEST_CASE("what is within the threshold or within the spread of the windows is not worse") {
  for (const Comparison& one : compare(pull(5, 0.1), pull(4.6, 0.1), 0.9)) CHECK_FALSE(one.worse);
  for (const Comparison& one : compare(pull(5, 0.6), pull(4, 0.6), 0.9)) CHECK_FALSE(one.worse);
}

TEST_CASE("a figure without windows is judged by the threshold alone") {
  const Json before = {{"kind", "raw"}, {"bytes", 5}, {"peak_rss_mib", 10.0}};
  Json after = before;
  after["peak_rss_mib"] = 20.0;
  const auto rows = compare(before, after, 0.9);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].ratio == 0.5);
  CHECK(rows[0].worse);
}

TEST_CASE("bare sockets that ran beside a pull are not compared") {
  Json before = pull(5, 0.1);
  before["raw"] = {{"gb_per_s", 6.0}};
  Json after = pull(5, 0.1);
  after["raw"] = {{"gb_per_s", 1.0}};
  for (const Comparison& one : compare(before, after, 0.9)) CHECK(one.ratio == 1);
}

TEST_CASE("measurements are matched by their settings, in whatever order and company") {
  const Json before = {{"results", {pull(5, 0.1, 1000), pull(8, 0.1, 2000)}}};
  const Json after = {{"results", {pull(8, 0.1, 2000), pull(3, 0.1, 3000), pull(5, 0.1, 1000)}}};
  const auto rows = compare(before, after, 0.9);
  CHECK(rows.size() == 4);
  for (const Comparison& one : rows) CHECK(one.ratio == 1);
}

TEST_CASE("documents of different things have nothing in common") {
  CHECK(compare(pull(5, 0.1, 1000), pull(5, 0.1, 2000), 0.9).empty());
  CHECK(compare(Json::array(), pull(5, 0.1), 0.9).empty());
}
