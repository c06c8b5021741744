#include "dpwa/cli/doctor_checks.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "test/support/temporary_directory.h"

namespace dpwa::cli {
namespace {

using Level = Check::Level;

DoctorFacts sound() {
  DoctorFacts facts;
  facts.own = {{"w1", 24000}};
  facts.others = {{"w2", "b:24000"}};
  facts.others[0].nobody_listens = true;
  facts.available_bytes = 8'000'000'000;
  facts.open_files = 1024;
  facts.first_outgoing_port = 32768;
  facts.last_outgoing_port = 60999;
  return facts;
}

// The text of the one check of that level.
std::string only(const DoctorFacts& facts, Level level) {
  std::string text;
  for (const Check& check : checks_of(facts)) {
    if (check.level == level) text += check.text + '\n';
  }
  return text;
}

}  // namespace

TEST_CASE("a machine that can run its part has neither warnings nor failures") {
  const auto checks = checks_of(sound());
  CHECK(checks.size() >= 4);
  CHECK(std::ranges::all_of(checks, [](const Check& one) { return one.level == Level::good; }));
}

TEST_CASE("what a run would fail of is a failure") {
  DoctorFacts facts = sound();
  std::string expected;
  SUBCASE("a port that is taken") {
    facts.own[0].problem = "cannot listen on 0.0.0.0: Address already in use by process 7 (nginx)";
    expected = "port 24000 of w1: cannot listen";
  }
  SUBCASE("a name that nobody knows") {
    facts.others[0].is_resolved = false;
    expected = "w2 at b:24000: its host cannot be resolved";
  }
  SUBCASE("memory for five models") {
    facts.model_bytes = 2'000'000'000;
    expected = "need at least 10.0 GB";
  }
  SUBCASE("files") {
    facts.open_files = 60;
    expected = "ulimit -n 68";
  }
  CHECK(test::has(only(facts, Level::failure), expected));
}

TEST_CASE("what may be meant is a warning") {
  DoctorFacts facts = sound();
  std::string expected;
  SUBCASE("a silent host") {
    facts.others[0].nobody_listens = false;
    facts.others[0].error = "no answer in time";
    expected = "w2 at b:24000: no answer in time";
  }
  SUBCASE("another time") {
    facts.others[0].answers = true;
    facts.others[0].clock_ahead_s = -90;
    expected = "the clock of w2 is 90.0 s behind";
  }
  SUBCASE("a port of outgoing connections") {
    facts.own[0].port = 40000;
    expected = "port 40000 of w1 is one of those";
  }
  SUBCASE("a small buffer for a long way") {
    facts.others[0].answers = true;
    facts.others[0].round_trip_ms = 80;
    facts.receive_buffer = 6'291'456;
    expected = "tcp_rmem is 6291456 bytes: a connection takes 39 MB/s at most; accepted: 16000000";
  }
  SUBCASE("a way on which a model takes too long") {
    facts.others[0].answers = true;
    facts.others[0].bytes_per_s = 50e6;
    facts.others[0].model_bytes = 100'000'000;
    facts.timeout_s = 0.5;
    expected = "brings 50 MB/s in 0.00 ms a round trip, so its model takes 2.0 s, longer than";
  }
  SUBCASE("a short queue of connections") {
    facts.connections_at_once = 1;
    expected = "net.core.somaxconn is 1";
  }
  SUBCASE("a seed whose name is not known yet") {
    facts.by_seeds = true;
    facts.others[0].is_resolved = false;
    expected = "w2 at b:24000: its host is not known here yet";
  }
  SUBCASE("the wrong machine") {
    facts.own.clear();
    expected = "no node or server";
  }
  CHECK(test::has(only(facts, Level::warning), expected));
  CHECK(only(facts, Level::failure).empty());
}

TEST_CASE("a way that is fast enough is told, and nothing is said of one that was not measured") {
  DoctorFacts facts = sound();
  facts.receive_buffer = facts.send_buffer = 6'291'456;
  facts.connections_at_once = 4096;
  facts.others[0].answers = true;
  CHECK_FALSE(test::has(only(facts, Level::good), "MB/s"));
  facts.others[0].round_trip_ms = 0.25;
  facts.others[0].bytes_per_s = 1e9;
  facts.others[0].model_bytes = 100'000'000;
  facts.timeout_s = 0.5;
  CHECK(test::has(only(facts, Level::good),
                  "a pull from w2 brings 1000 MB/s in 0.25 ms a round trip\n"));
  CHECK(only(facts, Level::warning).empty());
}

TEST_CASE("a process that runs already has its port") {
  DoctorFacts facts = sound();
  facts.own[0].problem = "Address already in use";
  facts.own[0].runs = true;
  CHECK(only(facts, Level::failure).empty());
}

}  // namespace dpwa::cli
