#include <doctest/doctest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpwa/security/key_file.h"
#include "test/process/train_process.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"

// dpwa-train with backend: collective, as processes that die, stop and come back.
namespace dpwa {
namespace {

const std::string collective = "backend: collective\ncollective: {start_wait_ms: 60s";

// The last line of a log.
std::string last_line(const std::string& log) {
  const auto end = log.find_last_not_of('\n');
  const auto begin = log.rfind('\n', end);
  return log.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

class Trainers {
 public:
  explicit Trainers(std::size_t count, const std::string& more = "}")
      : run_(count, collective + more) {}

  void start(const std::vector<std::string>& options) {
    nodes_.clear();
    for (const std::string& name : run_.names()) nodes_.push_back(trainer(name, options));
  }

  test::ChildProcess& node(std::size_t index) { return nodes_.at(index); }
  std::string logs() const { return run_.logs(); }
  std::string directory() const { return run_.directory(); }
  std::string log(std::size_t index) const { return run_.log(run_.names()[index]); }
  nlohmann::json result(std::size_t index) const {
    return test::training_result(run_, run_.names()[index]);
  }
  // Whether `dpwa status --check` finds no problem.
  bool are_well() const {
    test::ChildProcess check({DPWA_CLI, "status", "--check", run_.file()},
                             run_.directory() / "check.txt");
    return check.wait(test::run_patience) == 0;
  }
  // Of the first one, in its metrics.
  std::size_t steps() const { return test::training_lines(run_, run_.names().front()); }
  // They train until they are told to stop.
  void start_to_train() {
    start({"--steps", "100000", "--step-time", "10"});
    REQUIRE(test::eventually([&] { return steps() > 0; }, test::run_patience));
  }
  // It ends with 1; the last line that it says.
  std::string reason_of_end(std::size_t index) {
    const auto code = node(index).wait(test::run_patience);
    INFO(logs());
    REQUIRE(code == 1);
    return last_line(log(index));
  }

 private:
  test::ChildProcess trainer(const std::string& name, std::vector<std::string> options) const {
    options.emplace_back("--quiet");
    return test::start_training(run_, name, options);
  }

  test::ClusterRun run_;
  std::vector<test::ChildProcess> nodes_;
};

}  // namespace

TEST_CASE("a stopped trainer ends the others with 1 once it has not answered for a while") {
  Trainers trainers(3);
  trainers.start_to_train();
  trainers.node(1).signal(SIGSTOP);
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    // One finds out, and tells the other; or a view that was under way has left it out.
    const std::string line = trainers.reason_of_end(i);
    const bool found = test::has(line, "'w2' has not answered for");
    const bool heard = test::has(line, "'w2' is lost");
    const bool left_out = test::has(line, "'w2' was left out by the others");
    CAPTURE(line);
    CHECK((found || heard || left_out));
  }
  trainers.node(1).signal(SIGCONT);
  CHECK(trainers.node(1).wait(test::run_patience) == 1);
}

TEST_CASE("a trainer that is told to stop ends all after one step, each with its checkpoint") {
  for (const bool all : {true, false}) {
    Trainers trainers(3);
    trainers.start({"--steps", "100000", "--step-time", "5", "--checkpoint",
                    trainers.directory() + "/points"});
    REQUIRE(test::eventually([&] { return trainers.steps() > 0; }, test::run_patience));
    for (std::size_t i = 0; i < (all ? 3 : 1); ++i) trainers.node(i).signal(SIGTERM);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto code = trainers.node(i).wait(test::run_patience);
      INFO(trainers.logs());
      REQUIRE(code == (all || i == 0 ? 128 + SIGTERM : 1));
      CHECK(trainers.result(i)["interrupted"] == true);
      CHECK(trainers.result(i)["steps"] == trainers.result(0)["steps"]);
      CHECK(trainers.result(i)["test_loss"] == trainers.result(0)["test_loss"]);
      const auto steps = std::to_string(trainers.result(i)["steps"].get<std::uint64_t>());
      CHECK(std::filesystem::exists(trainers.directory() + "/points/w" + std::to_string(i + 1) +
                                    "." + steps + ".ckpt"));
    }
  }
}

TEST_CASE("a killed trainer is named by the others, and all resume from their checkpoints") {
  Trainers trainers(3);
  const std::vector<std::string> options{"--steps",
                                         "200",
                                         "--step-time",
                                         "5",
                                         "--checkpoint",
                                         trainers.directory() + "/points",
                                         "--checkpoint-every",
                                         "20"};
  trainers.start(options);
  REQUIRE(test::eventually([&] { return trainers.steps() > 60; }, test::run_patience));
  trainers.node(2).signal(SIGKILL);
  trainers.node(2).wait(test::run_patience);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const std::string line = trainers.reason_of_end(i);
    CHECK(test::has(line, "because backend collective needs every node: "));
    CHECK(test::has(line, "'w3'"));
  }
  std::vector<std::string> again = options;
  again.emplace_back("--resume");
  trainers.start(again);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto code = trainers.node(i).wait(2 * test::run_patience);
    INFO(trainers.logs());
    REQUIRE(code == 0);
    CHECK(trainers.result(i)["clock"] >= 200);
    const auto loss = trainers.result(i)["averaged_model"]["test_loss"];
    CHECK(loss == trainers.result(0)["averaged_model"]["test_loss"]);
    CHECK(loss < 0.2);
  }
}

TEST_CASE("SIGHUP makes the nodes of backend collective take another cluster key up") {
  const test::SecretFolder secrets;
  const auto file = secrets.path("cluster.key");
  create_private_file(file, key_file_text({new_key()}));
  Trainers trainers(2, "}\nsecurity: {mode: psk, key_file: " + file.string() + "}");
  trainers.start_to_train();
  replace_private_file(file, key_file_text({new_key()}));
  CHECK_FALSE(trainers.are_well());
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) trainers.node(i).signal(SIGHUP);
  const bool are_well = test::eventually([&] { return trainers.are_well(); }, test::run_patience);
  INFO(trainers.logs());
  CHECK(are_well);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) trainers.node(i).signal(SIGTERM);
}

}  // namespace dpwa
