#include "dpwa/log/events.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/temporary_directory.h"

namespace dpwa {
namespace {

std::vector<nlohmann::json> lines_of(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("an event is kept with the words of the log and a number of its own") {
  log_event(EventKind::suspected, LogLevel::debug, "members", "'w2' does not answer");
  const Event event = recent_events().back();
  CHECK(event.kind == EventKind::suspected);
  CHECK(event.text == "'w2' does not answer");
  CHECK(event.wall > 1.7e9);
  log(LogLevel::info, "members", "is no event");
  log(LogLevel::warn, "tx", "a warning\nin two lines");
  const Event warning = recent_events().back();
  CHECK(warning.kind == EventKind::warning);
  CHECK(warning.number == event.number + 1);
  CHECK(warning.text == "a warning\\x0ain two lines");
}

TEST_CASE("only the last events are kept, each of bounded size") {
  for (int i = 0; i < 100; ++i)
    log_event(EventKind::view, LogLevel::debug, "collective", std::string(10'000, 'x'));
  CHECK(recent_events().size() == recent_event_count);
  CHECK(recent_events().back().text.size() == most_event_bytes);
}

TEST_CASE("an event that the limiter holds back is none") {
  LogLimiter limiter;
  log_event(limiter, "w2", EventKind::lost, LogLevel::debug, "members", "first");
  const auto number = recent_events().back().number;
  log_event(limiter, "w2", EventKind::lost, LogLevel::debug, "members", "second");
  CHECK(recent_events().back().number == number);
}

TEST_CASE("the file gets the events of before and those that follow, one object a line") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "w1.events.jsonl";
  log_event(EventKind::joined, LogLevel::debug, "members", "'w3' joined");
  write_events_to(file);
  log_event(EventKind::checkpoint, LogLevel::debug, "train", "a \"checkpoint\"");
  const auto lines = lines_of(file);
  REQUIRE(lines.size() >= 2);
  CHECK(lines[lines.size() - 2]["event"] == "joined");
  CHECK(lines.back()["text"] == "a \"checkpoint\"");
  CHECK(lines.back()["from"] == "train");
  CHECK_THROWS_AS(write_events_to(directory.path() / "none" / "file"), std::runtime_error);
}

}  // namespace dpwa
