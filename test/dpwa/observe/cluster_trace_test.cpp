#include "dpwa/observe/cluster_trace.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/support/temporary_directory.h"

namespace dpwa {
namespace {

using observe::Json;
using observe::ProcessTrace;

StatusAnswer trace_answer(const std::string& json, std::chrono::microseconds round_trip) {
  StatusAnswer answer;
  answer.json = json;
  answer.middle_us = 1'000'000;
  answer.round_trip = round_trip;
  return answer;
}

const std::string trace_page =
    R"({"wall_us": 1000500, "next": 7, "missed": 2, "last": false, "spans": [
    ["trainer", "compute", "", 1000600, 1000700], ["trainer", "step", "", 1000600, 1000900], ["pull", "pull", "w2", 1000600, 1000650],
    ["store", "push", "fc1", 1000600, 1000800], ["store", "pull", "fc1", 1000700, 1000900]]})";

}  // namespace

TEST_CASE("the answer with the shortest way says how far a clock is ahead") {
  using std::chrono::microseconds;
  ProcessTrace trace;
  CHECK(take_page(trace_answer(trace_page, microseconds(400)), trace) == 7);
  CHECK(trace.ahead_us == 500);
  CHECK(trace.within_us == 200);
  CHECK(trace.missed == 2);
  CHECK(trace.spans.size() == 5);
  CHECK(take_page(trace_answer(R"({"wall_us": 1000300, "last": true})", microseconds(100)),
                  trace) == 0);
  CHECK(trace.ahead_us == 300);
  CHECK(take_page(trace_answer(R"({"wall_us": 1000900, "last": true})", microseconds(200)),
                  trace) == 0);
  CHECK(trace.ahead_us == 300);
  CHECK(take_page(trace_answer(R"({"wall_us": 1000040, "last": true})", microseconds(90)), trace) ==
        0);
  CHECK(trace.ahead_us == 0);  // of one machine, as far as can be told
  CHECK(trace.within_us == 45);
  CHECK(trace.problem.empty());
}

TEST_CASE("rows of a trace that are none are left out, and so is an answer without one") {
  ProcessTrace trace;
  const std::string rows = R"([3, [], ["x", "a", "b", 1, 2], ["pull", "a", "b", 2, 1],
      ["pull", 1, "b", 1, 2], ["pull", "a", "b", -1, 2], ["pull", "a", "b", 1, 1e300],
      ["pull", "\u001b[2J", "b", 1, 2]])";
  CHECK(take_page(trace_answer(R"({"wall_us": 5, "spans": )" + rows + "}", {}), trace) == 0);
  REQUIRE(trace.spans.size() == 1);
  CHECK(trace.spans[0].name == "?[2J");
  for (const char* const bad : {"", "[]", "{}", R"({"wall_us": "now"})"}) {
    trace = {};
    CHECK(take_page(trace_answer(bad, {}), trace) == 0);
    CHECK(trace.problem == "answers without a trace");
  }
}

// The rules of the format: each event has a phase, a process and a thread; a complete one has a
// time, and lies within the ones of its thread that it begins in; a beginning has its end.
TEST_CASE("the file of a trace keeps to the rules of its format, by one clock") {
  ProcessTrace w1, w2;
  w1.name = "w1";
  w2.name = "w2";
  take_page(trace_answer(trace_page, {}), w1);
  const auto file = to_chrome(std::vector<ProcessTrace>{w1, w2});
  std::map<Json, std::vector<Json>> pairs;
  std::set<std::string> named;
  for (const Json& event : file["traceEvents"]) {
    const std::string phase = event["ph"];
    CHECK(event["pid"].is_number_integer());
    CHECK(event["tid"].is_number_integer());
    CHECK(event["name"].is_string());
    if (phase == "M") {
      named.insert(event["args"]["name"]);
      continue;
    }
    CHECK(event["ts"].is_number_integer());
    if (phase == "X") CHECK(event["dur"] >= 0);
    if (phase != "X") pairs[event["id"]].push_back(event);
  }
  CHECK(named == std::set<std::string>{"w1", "w2", "trainer", "pull", "store"});
  CHECK(pairs.size() == 2);
  for (const auto& [id, both] : pairs) {
    REQUIRE(both.size() == 2);
    CHECK(both[0]["ph"] == "b");
    CHECK(both[1]["ph"] == "e");
    CHECK(both[0]["cat"] == both[1]["cat"]);
    CHECK(both[0]["name"] == both[1]["name"]);
    CHECK(both[0]["ts"] <= both[1]["ts"]);
  }
  const auto first = std::ranges::find(file["traceEvents"], Json("X"),
                                       [](const Json& event) { return event["ph"]; });
  CHECK(*first == Json({{"ph", "X"},
                        {"name", "step"},
                        {"cat", "dpwa.trainer"},
                        {"pid", 1},
                        {"tid", 1},
                        {"ts", 1000100},
                        {"dur", 300}}));
  CHECK(file["baseTimeNanoseconds"] == 0);
  for (ProcessTrace::Span& span : w1.spans) {
    span.begin_us += 1'796'013'299'000'000;  // in November 2026
    span.end_us += 1'796'013'299'000'000;
  }
  const auto later = to_chrome(std::vector<ProcessTrace>{w1});
  CHECK(later["baseTimeNanoseconds"] == 1'790'857'026'000'000'000);  // as torch 2.13 had it
  CHECK(later["traceEvents"][4]["ts"] == 5'156'273'000'000 + 1'000'100);
  CHECK(file["otherData"]["clocks"]["w1"]["ahead_us"] == 500);
}

TEST_CASE("each process with spans has a file, and stays in the folder") {
  const test::TemporaryDirectory directory;
  ProcessTrace one, joined, silent;
  one.name = "w1";
  joined.name = "../w2";
  silent.name = "w3";
  take_page(trace_answer(trace_page, {}), one);
  take_page(trace_answer(trace_page, {}), joined);
  const auto folder = directory.path() / "traces";
  write_traces(folder, std::vector<ProcessTrace>{one, joined, silent});
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.insert(entry.path().filename().string());
  CHECK(files == std::set<std::string>{".._w2.trace.json", "trace.json", "w1.trace.json"});
  std::ifstream in(folder / "trace.json");
  CHECK(Json::parse(in)["traceEvents"].size() > 6);
}

}  // namespace dpwa
