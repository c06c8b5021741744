#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/process/cluster_run.h"
#include "test/support/eventually.h"

// Backend collective with processes that are killed, frozen and started again at random moments,
// under the policies that go on without them.
namespace dpwa {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr std::size_t default_hidden = 24;

class Trainers {
 public:
  Trainers(std::size_t count, const std::string& policy, std::size_t hidden = default_hidden)
      : run_(count,
             "backend: collective\ngossip: {start_wait_ms: 2000, finish_wait_ms: 500}\n"
             "collective: {start_wait_ms: 60s, " +
                 policy + "}"),
        hidden_(hidden) {
    for (std::size_t i = 0; i < count; ++i) nodes_.emplace_back();
  }

  void start(std::size_t index, int steps, int step_ms = 10) {
    const std::string& name = run_.names()[index];
    nodes_[index].emplace(
        std::vector<std::string>{DPWA_COLLECTIVE_TRAINER, run_.file(), name, std::to_string(steps),
                                 std::to_string(step_ms), std::to_string(hidden_), output(index)},
        run_.directory() / (name + ".log"), std::vector<std::string>{"OMP_NUM_THREADS=1"});
  }
  void start_all(int steps, int step_ms = 10) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) start(i, steps, step_ms);
  }

  test::ChildProcess& node(std::size_t index) { return *nodes_[index]; }

  // All at once. The last step of each belongs to it alone where no survivor has finished that
  // step: they repeat it without the dead.
  void kill(const std::vector<std::size_t>& indices) {
    for (const std::size_t index : indices) node(index).signal(SIGKILL);
    for (const std::size_t index : indices) {
      REQUIRE(node(index).wait(test::run_patience) == -SIGKILL);
      last_steps_.emplace(index, lines(index).size() - 1);
    }
  }
  std::string logs() const { return run_.logs(); }
  std::string log(std::size_t index) const { return run_.log(run_.names()[index]); }
  Json status(std::size_t index) const { return run_.status(run_.names()[index]); }

  // Its steps so far.
  std::vector<Json> lines(std::size_t index) const {
    std::vector<Json> found;
    std::ifstream file(output(index));
    for (std::string line; std::getline(file, line) && !file.eof();)
      found.push_back(Json::parse(line));
    return found;
  }
  double clock(std::size_t index) const {
    const auto all = lines(index);
    return all.empty() || !all.back().contains("clock") ? 0 : all.back()["clock"].get<double>();
  }
  bool reaches(std::size_t index, double clock_wanted) const {
    return test::eventually([&] { return clock(index) >= clock_wanted; }, test::run_patience);
  }

  // Every node ends with 0 and with the same model. At every clock it had the same as the others,
  // but for the last step before it was killed.
  void check_end(const std::vector<std::size_t>& indices) {
    for (const std::size_t index : indices) {
      const auto code = node(index).wait(2 * test::run_patience);
      INFO(logs());
      REQUIRE(code == 0);
    }
    std::map<double, std::uint32_t> sums;
    std::size_t shared = 0;
    for (std::size_t index = 0; index < nodes_.size(); ++index) {
      const auto all = lines(index);
      for (std::size_t step = 0; step < all.size(); ++step) {
        const Json& line = all[step];
        if (!line.contains("clock") || line["outcome"] != "averaged") continue;
        if (last_steps_.contains({index, step})) continue;
        const auto [known, is_new] = sums.emplace(line["clock"], line["sum"]);
        shared += is_new ? 0 : 1;
        CAPTURE(index);
        CAPTURE(line.dump());
        CHECK(known->second == line["sum"]);
      }
    }
    CHECK(shared > 100);
    for (const std::size_t index : indices)
      CHECK(lines(index).back()["sum"] == lines(indices.front()).back()["sum"]);
  }

 private:
  std::string output(std::size_t index) const {
    return run_.directory() / (run_.names()[index] + ".steps");
  }

  test::ClusterRun run_;
  const std::size_t hidden_;
  std::vector<std::optional<test::ChildProcess>> nodes_;
  std::set<std::pair<std::size_t, std::size_t>> last_steps_;  // node and line, of those killed
};

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
  Trainers trainers(3, "on_lost_rank: shrink");
  trainers.start_all(800);
  REQUIRE(trainers.reaches(0, 40));
  trainers.kill({0});
  const double lost_at = trainers.clock(1);
  INFO(trainers.logs());
  REQUIRE(trainers.reaches(1, lost_at + 60));
  CHECK(last_size(trainers.lines(1)) == 2);
  trainers.start(0, 800);
  trainers.check_end({0, 1, 2});
  CHECK(last_size(trainers.lines(1)) == 3);
  const std::size_t missed =
      check_samples({trainers.lines(0), trainers.lines(1), trainers.lines(2)});
  CHECK(missed <= 4);
}

TEST_CASE("shrink: ranks that are killed at random moments of large steps leave equal replicas") {
  std::mt19937 random(11);
  Trainers trainers(4, "on_lost_rank: shrink, bucket_bytes: 128KiB", 600);
  trainers.start_all(800, 5);
  REQUIRE(trainers.reaches(0, 10));
  for (int kill = 0; kill < 3; ++kill) {
    const std::size_t victim = random() % 4;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    INFO(trainers.logs());
    const std::size_t other = (victim + 1) % 4;
    if (trainers.clock(other) > 300) break;
    trainers.kill({victim});
    REQUIRE(trainers.reaches(other, trainers.clock(other) + 5));
    trainers.start(victim, 800, 5);
    REQUIRE(test::eventually([&] { return last_size(trainers.lines(other)) == 4; },
                             test::run_patience));
  }
  trainers.check_end({0, 1, 2, 3});
}

TEST_CASE("shrink: a frozen rank is left behind, and is taken in when it wakes") {
  Trainers trainers(3, "on_lost_rank: shrink, lost_after_ms: 700");
  trainers.start_all(600);
  REQUIRE(trainers.reaches(1, 40));
  trainers.node(1).signal(SIGSTOP);
  const double frozen_at = trainers.clock(0);
  INFO(trainers.logs());
  REQUIRE(trainers.reaches(0, frozen_at + 60));
  CHECK(last_size(trainers.lines(0)) == 2);
  // One of the two notices; the other may hear of it first.
  CHECK((trainers.log(0) + trainers.log(2)).find("'w2' has not answered for") != std::string::npos);
  trainers.node(1).signal(SIGCONT);
  REQUIRE(test::eventually([&] { return last_size(trainers.lines(0)) == 3; }, test::run_patience));
  trainers.check_end({0, 1, 2});
}

TEST_CASE("shrink: a rank that is told to stop leaves, and the other one goes on alone") {
  Trainers trainers(2, "on_lost_rank: shrink");
  trainers.start_all(300);
  REQUIRE(trainers.reaches(0, 120));
  trainers.node(0).signal(SIGTERM);
  CHECK(trainers.node(0).wait(test::run_patience) == 128 + SIGTERM);
  trainers.check_end({1});
}

TEST_CASE("shrink: a rank without free file descriptors goes on once it has some again") {
  Trainers trainers(4, "on_lost_rank: shrink, lost_after_ms: 100s");
  trainers.start_all(600);
  REQUIRE(trainers.reaches(0, 120));
  const pid_t process = trainers.node(0).id();
  rlimit before{};
  REQUIRE(prlimit(process, RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit none{6, before.rlim_max};  // of the numbers below it none is free
  REQUIRE(prlimit(process, RLIMIT_NOFILE, &none, nullptr) == 0);
  trainers.kill({3});
  const bool says = test::eventually(
      [&] { return trainers.log(0).find("Too many open files") != std::string::npos; },
      test::run_patience);
  REQUIRE(prlimit(process, RLIMIT_NOFILE, &before, nullptr) == 0);
  INFO(trainers.logs());
  CHECK(says);
  trainers.check_end({0, 1, 2});
}

TEST_CASE("shrink: a part that has no majority ends with one line") {
  Trainers trainers(3, "on_lost_rank: shrink, lost_after_ms: 700");
  trainers.start_all(100000);
  REQUIRE(trainers.reaches(0, 30));
  trainers.node(1).signal(SIGSTOP);
  trainers.node(2).signal(SIGSTOP);
  const auto code = trainers.node(0).wait(test::run_patience);
  INFO(trainers.logs());
  CHECK(code == 1);
  const std::string log = trainers.log(0);
  CHECK(log.find("are not a majority of it; missing: 'w2'") != std::string::npos);
  CHECK(log.find("; start all nodes again from their checkpoints, or set collective.minority: "
                 "gossip") != std::string::npos);
}

TEST_CASE("gossip: the others train on at once, and return to all-reduce together") {
  Trainers trainers(4, "on_lost_rank: gossip");
  trainers.start_all(900);
  REQUIRE(trainers.reaches(0, 50));
  trainers.kill({2, 3});
  const double lost_at = trainers.clock(1);
  INFO(trainers.logs());
  REQUIRE(trainers.reaches(1, lost_at + 100));
  trainers.start(2, 900);
  trainers.start(3, 900);
  REQUIRE(test::eventually([&] { return last_size(trainers.lines(1)) == 4; }, test::run_patience));
  trainers.check_end({0, 1, 2, 3});
}

TEST_CASE("shrink: a part without the majority trains on by gossip where it may") {
  Trainers trainers(3, "on_lost_rank: shrink, minority: gossip, lost_after_ms: 700");
  trainers.start_all(1000);
  REQUIRE(trainers.reaches(0, 30));
  trainers.node(1).signal(SIGSTOP);
  trainers.node(2).signal(SIGSTOP);
  const double frozen_at = trainers.clock(0);
  INFO(trainers.logs());
  REQUIRE(trainers.reaches(0, frozen_at + 100));
  CHECK(last_size(trainers.lines(0)) == 1);
  trainers.node(1).signal(SIGCONT);
  trainers.node(2).signal(SIGCONT);
  REQUIRE(test::eventually([&] { return last_size(trainers.lines(0)) == 3; }, test::run_patience));
  trainers.check_end({0, 1, 2});
}

}  // namespace dpwa
