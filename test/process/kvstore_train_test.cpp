#include <doctest/doctest.h>
#include <signal.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/process/train_process.h"
#include "test/support/eventually.h"

// dpwa-train with servers of the store, while a worker is frozen.
namespace dpwa {
namespace {

using Json = nlohmann::json;

class TrainRun {
 public:
  explicit TrainRun(int steps)
      : steps_(steps),
        run_(3, "backend: kvstore\nkvstore: {type: dist_sync, lost_after_ms: 1000, servers: " +
                    test::server_entries(2) + "}\n") {
    for (const std::string name : {"s1", "s2"})
      processes_.emplace(name, test::start_server(run_.file(), name));
    for (const std::string& name : run_.names()) {
      processes_.emplace(name, test::start_training(run_, name,
                                                    {"--steps", std::to_string(steps), "--quiet",
                                                     "--step-time", "10"}));
    }
  }
  test::ChildProcess& at(const std::string& name) { return processes_.at(name); }
  bool logs(const std::string& name, const std::string& words) const {
    return test::eventually([&] { return run_.log(name).find(words) != std::string::npos; },
                            test::run_patience);
  }
  // So many more than it has made.
  bool makes_steps(const std::string& name, int more) const {
    const auto made = [&] { return static_cast<int>(test::training_lines(run_, name)); };
    const int wanted = made() + more;
    return test::eventually([&] { return made() >= wanted; }, test::run_patience);
  }
  // All end well, after the same step and with the same model.
  void check_end() {
    for (const std::string& name : run_.names()) {
      const auto code = at(name).wait(2 * test::run_patience);
      INFO(run_.logs());
      REQUIRE(code == 0);
    }
    const Json first = test::training_result(run_, "w1");
    INFO(run_.logs());
    for (const std::string& name : run_.names()) {
      const Json own = test::training_result(run_, name);
      INFO(own.dump(2));
      CHECK(own["clock"] <= steps_ + 1);  // a worker that returns after the end counts one more
      REQUIRE(own["averaged_model"].is_object());
      CHECK(own["averaged_model"]["test_loss"] == first["averaged_model"]["test_loss"]);
      CHECK(run_.log(name).find("this node's last step") == std::string::npos);
    }
  }

 private:
  const int steps_;
  test::ClusterRun run_;
  std::map<std::string, test::ChildProcess> processes_;
};

}  // namespace

TEST_CASE("dpwa-train: a frozen worker that wakes goes on at the step of the others") {
  TrainRun run(600);
  REQUIRE(run.makes_steps("w3", 30));
  run.at("w3").signal(SIGSTOP);
  REQUIRE(run.logs("w1", "worker 'w3' was left out"));
  REQUIRE(run.makes_steps("w1", 60));  // which it misses
  run.at("w3").signal(SIGCONT);
  run.check_end();
  CHECK(run.logs("w3", "continues at step"));
}

TEST_CASE("dpwa-train: a frozen worker that wakes after the end takes the final weights") {
  TrainRun run(200);
  REQUIRE(run.makes_steps("w3", 30));
  run.at("w3").signal(SIGSTOP);
  for (const std::string name : {"w1", "w2"}) {
    REQUIRE(run.at(name).wait(2 * test::run_patience) == 0);
  }
  run.at("w3").signal(SIGCONT);
  run.check_end();
}

// It waits for the long step of the first worker, because its weights have to include it.
TEST_CASE("dpwa-train: a worker that is told to stop during its start tells the servers") {
  test::ClusterRun run(2, "backend: kvstore\nkvstore: {type: dist_sync, min_workers: 1, servers: " +
                              test::server_entries(1) + "}\n");
  test::ChildProcess server = test::start_server(run.file(), "s1");
  const auto start = [&](const std::string& name, const std::string& step_ms) {
    return test::start_training(run, name, {"--steps", "1000", "--quiet", "--step-time", step_ms});
  };
  const auto says = [&](const std::string& name, const std::string& words) {
    return test::eventually([&] { return run.log(name).find(words) != std::string::npos; },
                            test::run_patience);
  };
  test::ChildProcess first = start("w1", "8000");
  REQUIRE(says("w1", "takes part from step"));
  test::ChildProcess second = start("w2", "10");
  REQUIRE(says("s1", "worker 'w2' takes part from step"));
  second.signal(SIGTERM);
  CHECK(second.wait(test::run_patience) == 128 + SIGTERM);
  CHECK(says("s1", "worker 'w2' has left"));
  INFO(run.log("s1"));
  INFO(run.log("w2"));
  CHECK(run.log("s1").find("left out") == std::string::npos);
  first.signal(SIGKILL);
}

}  // namespace dpwa
