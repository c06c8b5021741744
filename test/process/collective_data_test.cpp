#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "test/process/train_process.h"
#include "test/support/temporary_directory.h"

// How nodes of dpwa-train with backend: collective share their data: one order, one position.
namespace dpwa {
namespace {

constexpr std::uint64_t data_size = 12000;  // of the synthetic set
constexpr std::uint64_t batch = 32;

// Trains to the end on so many nodes; their results.
std::vector<nlohmann::json> train(std::size_t nodes, const std::vector<std::string>& options) {
  const test::ClusterRun cluster(nodes, "backend: collective\ncollective: {start_wait_ms: 60s}");
  std::vector<test::ChildProcess> processes;
  for (const auto& name : cluster.names()) {
    processes.push_back(test::start_training(cluster, name, options));
  }
  std::vector<nlohmann::json> results;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto code = processes[i].wait(2 * test::run_patience);
    INFO(cluster.logs());
    REQUIRE(code == 0);
    results.push_back(test::training_result(cluster, cluster.names()[i]));
  }
  return results;
}

std::uint64_t samples_of(const std::vector<nlohmann::json>& results) {
  return std::accumulate(results.begin(), results.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const nlohmann::json& result) {
                           return sum + result["samples"].get<std::uint64_t>();
                         });
}

}  // namespace

TEST_CASE("nodes of a synchronous group take all samples once an epoch, also after a resume") {
  const auto points = std::filesystem::temp_directory_path() /
                      ("dpwa-collective-data-" + std::to_string(::getpid()));
  const std::vector<std::string> checkpoint{"--checkpoint", points.string()};
  const auto with = [&](std::vector<std::string> options) {
    options.insert(options.end(), checkpoint.begin(), checkpoint.end());
    return options;
  };
  const auto three = train(3, with({"--steps", "50"}));
  CHECK(samples_of(three) == 50 * 3 * batch);
  for (const auto& result : three) {
    CHECK(result["backend"] == "collective");
    CHECK(result["clock"] == 50);
    CHECK(result["averaged_model"]["participants"] == 3);
    CHECK(result["averaged_model"]["test_loss"] == result["test_loss"]);
  }

  // The rest of the epoch by two of them: 225 steps of 64 samples less the 4,800 that are done.
  const auto two = train(2, with({"--epochs", "1", "--resume"}));
  const std::uint64_t done = samples_of(three);
  const std::uint64_t of_two = samples_of({three[0], three[1]});
  CHECK(samples_of(two) - of_two == data_size - done);
  const std::uint64_t steps = 50 + (data_size - done + 2 * batch - 1) / (2 * batch);
  for (const auto& result : two) {
    CHECK(result["steps"] == steps);
    CHECK(result["clock"] == steps);
    CHECK(result["test_loss"] == two[0]["test_loss"]);
  }

  // And a second epoch by four, of which the last has no checkpoint and takes over the position.
  const auto four = train(4, with({"--epochs", "2", "--resume"}));
  const std::uint64_t before = two[0]["samples"].get<std::uint64_t>() +
                               two[1]["samples"].get<std::uint64_t>() +
                               three[2]["samples"].get<std::uint64_t>();
  CHECK(samples_of(four) - before == data_size);
  for (const auto& result : four) CHECK(result["test_loss"] == four[0]["test_loss"]);
  std::filesystem::remove_all(points);
}

TEST_CASE(
    "a synchronous group that is stopped and resumed ends bit by bit where one that was not") {
  const auto points = std::filesystem::temp_directory_path() /
                      ("dpwa-collective-resume-" + std::to_string(::getpid()));
  const auto losses_of = [](const std::vector<nlohmann::json>& results) {
    return std::vector<double>{results[0]["test_loss"], results[1]["test_loss"]};
  };
  const auto with = [&](std::vector<std::string> options, bool keep) {
    for (const char* more : {"--optimizer", "adam", "--schedule", "constant"})
      options.emplace_back(more);
    if (keep) options.insert(options.end(), {"--checkpoint", points.string()});
    return options;
  };
  const auto straight = train(2, with({"--steps", "250"}, false));
  train(2, with({"--steps", "150"}, true));
  const auto resumed = train(2, with({"--steps", "250", "--resume"}, true));
  CHECK(losses_of(resumed) == losses_of(straight));
  CHECK(resumed[0]["samples"] == straight[0]["samples"]);
  std::filesystem::remove_all(points);
}

TEST_CASE("nodes with samples of their own admit one that was frozen, at their step and rate") {
  constexpr int steps = 600;
  std::string policy;
  std::string without_it;
  SUBCASE("shrink") {
    policy = "shrink";
    without_it = "rank 0 of 2 (w1, w2)";
  }
  SUBCASE("gossip") {
    policy = "gossip";
    without_it = "training continues by gossip averaging";
  }
  const test::ClusterRun cluster(
      3, "backend: collective\ncollective: {on_lost_rank: " + policy + ", lost_after_ms: 700}");
  std::map<std::string, test::ChildProcess> nodes;
  for (const std::string& name : cluster.names()) {
    nodes.emplace(name, test::start_training(cluster, name,
                                             {"--split", "dirichlet:0.5", "--quiet", "--step-time",
                                              "10", "--steps", std::to_string(steps)}));
  }
  const auto says = [&](const std::string& name, const std::string& words) {
    return test::holds_in_time([&] { return test::has(cluster.log(name), words); });
  };
  const auto made = [&](const std::string& name) { return test::training_lines(cluster, name); };
  REQUIRE(test::holds_in_time([&] { return made("w3") > 30; }));
  nodes.at("w3").signal(SIGSTOP);
  INFO(cluster.logs());
  REQUIRE(says("w1", without_it));
  const auto before = made("w1");
  REQUIRE(test::holds_in_time([&] { return made("w1") > before + 50; }));
  nodes.at("w3").signal(SIGCONT);
  std::vector<nlohmann::json> results;
  for (const std::string& name : cluster.names()) {
    const auto code = nodes.at(name).wait(2 * test::run_patience);
    INFO(cluster.logs());
    REQUIRE(code == 0);
    results.push_back(test::training_result(cluster, name));
    CHECK(results.back()["steps"] == steps);
    CHECK(results.back()["averaged_model"]["participants"] == 3);
    CHECK(results.back()["averaged_model"]["test_loss"] ==
          results.front()["averaged_model"]["test_loss"]);
  }
  CHECK(says("w3", "continues at step"));
}

}  // namespace dpwa
