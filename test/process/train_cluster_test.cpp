#include <doctest/doctest.h>

#include "test/process/train_process.h"

namespace dpwa {

TEST_CASE("four dpwa-train processes learn, and end with one and the same averaged model") {
  test::ClusterRun run(4, "gossip: {timeout_ms: 5s, start_wait_ms: 60s, finish_wait_ms: 60s}");
  std::vector<test::ChildProcess> nodes;
  for (const auto& name : run.names()) {
    nodes.push_back(test::start_training(run, name, {"--steps", "150", "--quiet"}));
  }
  for (auto& node : nodes) {
    const auto code = node.wait(2 * test::run_patience);
    INFO(run.logs());
    REQUIRE(code == 0);
  }
  const auto result = [&run](const std::string& name) { return test::training_result(run, name); };
  const auto first = result("w1");
  INFO(first.dump(2));
  for (const auto& name : run.names()) {
    CHECK(result(name)["test_accuracy"] > 0.5);  // chance is 0.1
    const auto averaged = result(name)["averaged_model"];
    REQUIRE(averaged.is_object());
    CHECK(averaged["participants"] == 4);
    CHECK(averaged["test_accuracy"] > 0.5);
    CHECK(averaged["test_accuracy"] == first["averaged_model"]["test_accuracy"]);
    CHECK(averaged["test_loss"] == first["averaged_model"]["test_loss"]);
  }
}

}  // namespace dpwa
