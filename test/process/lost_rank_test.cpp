#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/process/trained_store.h"
#include "test/support/eventually.h"

// Backend collective with processes that are killed, frozen and started again at random moments,
// under the policies that go on without them.
namespace dpwa {
namespace {

using Json = nlohmann::json;

std::string settings_with(const std::string& policy) {
  return "backend: collective\ngossip: {start_wait_ms: 2000, finish_wait_ms: 500}\n"
         "collective: {start_wait_ms: 60s, " +
         policy + "}";
}

// The nodes in the last group that this one has stepped in.
std::size_t last_size(const std::vector<Json>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->contains("participants") && line->contains("clock")) return (*line)["participants"];
  }
  return 0;
}

// No sample of the shared data is taken twice, and only the batches of a loss are missed.
std::size_t check_samples(const std::vector<std::vector<Json>>& nodes) {
  std::map<std::int64_t, int> taken;
  std::int64_t end = 0;
  for (const auto& lines : nodes) {
    for (const Json& line : lines) {
      if (!line.contains("from")) continue;
      const std::int64_t from = line["from"];
      end = std::max(end, from + 4 * line["size"].get<std::int64_t>());
      ++taken[from + 4 * line["rank"].get<std::int64_t>()];
    }
  }
  std::size_t missed = 0;
  for (std::int64_t at = 0; at < end; at += 4) {
    CAPTURE(at);
    CHECK(taken[at] <= 1);
    missed += taken[at] == 0 ? 1 : 0;
  }
  return missed;
}

}  // namespace

TEST_CASE("shrink: the first rank is killed, the others go on, and take it in when it is back") {
  test::SmallTrainers trainers(3, settings_with("on_lost_rank: shrink"));
  trainers.start_all(800);
  REQUIRE(trainers.reaches("w1", 40));
  trainers.kill({"w1"});
  const double lost_at = trainers.clock("w2");
  INFO(trainers.logs());
  REQUIRE(trainers.reaches("w2", lost_at + 60));
  CHECK(last_size(trainers.lines("w2")) == 2);
  trainers.start("w1", 800);
  CHECK(trainers.check_end({"w1", "w2", "w3"}) > 100);
  CHECK(last_size(trainers.lines("w2")) == 3);
  const std::size_t missed =
      check_samples({trainers.lines("w1"), trainers.lines("w2"), trainers.lines("w3")});
  CHECK(missed <= 4);
}

TEST_CASE("shrink: ranks that are killed at random moments of large steps leave equal replicas") {
  std::mt19937 random(11);
  test::SmallTrainers trainers(4, settings_with("on_lost_rank: shrink, bucket_bytes: 128KiB"), 600);
  trainers.start_all(800, 5);
  REQUIRE(trainers.reaches("w1", 10));
  for (int kill = 0; kill < 3; ++kill) {
    const auto number = random() % 4;
    const std::string victim = "w" + std::to_string(number + 1);
    const std::string other = "w" + std::to_string((number + 1) % 4 + 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    INFO(trainers.logs());
    if (trainers.clock(other) > 300) break;
    trainers.kill({victim});
    REQUIRE(trainers.reaches(other, trainers.clock(other) + 5));
    trainers.start(victim, 800, 5);
    REQUIRE(test::eventually([&] { return last_size(trainers.lines(other)) == 4; },
                             test::run_patience));
  }
  CHECK(trainers.check_end({"w1", "w2", "w3", "w4"}) > 100);
}

TEST_CASE("shrink: a rank that is told to stop leaves, and the other one goes on alone") {
  test::SmallTrainers trainers(2, settings_with("on_lost_rank: shrink"));
  trainers.start_all(300);
  REQUIRE(trainers.reaches("w1", 120));
  trainers.at("w1").signal(SIGTERM);
  CHECK(trainers.at("w1").wait(test::run_patience) == 128 + SIGTERM);
  CHECK(trainers.check_end({"w2"}) > 100);
}

TEST_CASE("shrink: a rank without free file descriptors goes on once it has some again") {
  test::SmallTrainers trainers(4, settings_with("on_lost_rank: shrink, lost_after_ms: 100s"));
  trainers.start_all(600);
  REQUIRE(trainers.reaches("w1", 120));
  const pid_t process = trainers.at("w1").id();
  rlimit before{};
  REQUIRE(prlimit(process, RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit none{6, before.rlim_max};  // of the numbers below it none is free
  REQUIRE(prlimit(process, RLIMIT_NOFILE, &none, nullptr) == 0);
  trainers.kill({"w4"});
  const bool says = test::eventually(
      [&] { return test::has(trainers.log("w1"), "Too many open files"); }, test::run_patience);
  REQUIRE(prlimit(process, RLIMIT_NOFILE, &before, nullptr) == 0);
  INFO(trainers.logs());
  CHECK(says);
  CHECK(trainers.check_end({"w1", "w2", "w3"}) > 100);
}

TEST_CASE("gossip: the others train on at once, and return to all-reduce together") {
  test::SmallTrainers trainers(4, settings_with("on_lost_rank: gossip"));
  trainers.start_all(900);
  REQUIRE(trainers.reaches("w1", 50));
  trainers.kill({"w3", "w4"});
  const double lost_at = trainers.clock("w2");
  INFO(trainers.logs());
  REQUIRE(trainers.reaches("w2", lost_at + 100));
  trainers.start("w3", 900);
  trainers.start("w4", 900);
  REQUIRE(
      test::eventually([&] { return last_size(trainers.lines("w2")) == 4; }, test::run_patience));
  CHECK(trainers.check_end({"w1", "w2", "w3", "w4"}) > 100);
}

TEST_CASE("shrink: a part without the majority trains on by gossip where it may") {
  test::SmallTrainers trainers(
      3, settings_with("on_lost_rank: shrink, minority: gossip, lost_after_ms: 700"));
  trainers.start_all(1000);
  REQUIRE(trainers.reaches("w1", 30));
  trainers.at("w2").signal(SIGSTOP);
  trainers.at("w3").signal(SIGSTOP);
  const double frozen_at = trainers.clock("w1");
  INFO(trainers.logs());
  REQUIRE(trainers.reaches("w1", frozen_at + 100));
  CHECK(last_size(trainers.lines("w1")) == 1);
  trainers.at("w2").signal(SIGCONT);
  trainers.at("w3").signal(SIGCONT);
  REQUIRE(
      test::eventually([&] { return last_size(trainers.lines("w1")) == 3; }, test::run_patience));
  CHECK(trainers.check_end({"w1", "w2", "w3"}) > 100);
}

}  // namespace dpwa
