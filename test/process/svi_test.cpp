#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/process/cluster_run.h"

// Variational inference by processes: one model whose posterior is known. Nodes of one process find
// it under every back end in test/adapters/inference/natural_exchange_test.cpp.
namespace dpwa {
namespace {

class Nodes {
 public:
  // `servers`: of the parameter server.
  Nodes(const std::string& settings, std::size_t count, std::size_t servers = 0)
      : run_(count, settings) {
    for (std::size_t i = 1; i <= servers; ++i)
      servers_.push_back(test::start_server(run_.file(), "s" + std::to_string(i)));
  }

  void start(const std::vector<std::string>& rows) {
    for (std::size_t i = 0; i < run_.names().size(); ++i) {
      const std::string& name = run_.names()[i];
      nodes_.emplace_back(std::vector<std::string>{DPWA_SVI_NODE, run_.file(), name,
                                                   rows[i % rows.size()], output(name)},
                          run_.directory() / (name + ".log"));
    }
  }
  std::vector<int> wait() {
    std::vector<int> codes;
    for (auto& node : nodes_) codes.push_back(node.wait(test::run_patience).value_or(-1));
    return codes;
  }
  std::vector<nlohmann::json> results() const {
    std::vector<nlohmann::json> all;
    for (const std::string& name : run_.names())
      all.push_back(nlohmann::json::parse(std::ifstream(output(name))));
    return all;
  }
  std::string logs() const { return run_.logs(); }

 private:
  std::string output(const std::string& name) const { return run_.directory() / (name + ".json"); }

  test::ClusterRun run_;
  std::vector<test::ChildProcess> servers_;
  std::vector<test::ChildProcess> nodes_;
};

void check_close(const nlohmann::json& found, const nlohmann::json& exact) {
  REQUIRE(found.size() == exact.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(found[i].get<double>() - exact[i].get<double>()) < 1e-6);
}

}  // namespace

TEST_CASE("the exact posterior is found by three workers of a parameter server") {
  constexpr std::size_t count = 3;
  Nodes nodes("backend: kvstore\nkvstore: {start_wait_ms: 60s, lost_after_ms: 30s, servers: " +
                  test::server_entries(2) + "}",
              count, 2);
  nodes.start({"61"});  // three shards of 21, 20 and 20 rows
  const auto codes = nodes.wait();
  INFO(nodes.logs());
  REQUIRE(codes == std::vector<int>(count, 0));
  for (const auto& found : nodes.results()) {
    CHECK(found["participants"] == count);
    check_close(found["normal"], {16.0 / 9});
    check_close(found["normal_variance"], {1.0 / 9});
    check_close(found["weights"], found["exact_weights"]);
    check_close(found["weights_covariance"], found["exact_covariance"]);
  }
}

TEST_CASE("workers of backend collective that hold other data are refused in one line") {
  Nodes nodes("backend: collective\ncollective: {start_wait_ms: 60s}", 2);
  nodes.start({"60", "61"});
  const auto codes = nodes.wait();
  const std::string logs = nodes.logs();
  INFO(logs);
  CHECK(codes == std::vector<int>{1, 1});
  CHECK(test::has(logs, "float64[60, 3], float64[60]"));
  CHECK(test::has(logs, "float64[61, 3], float64[61]"));
}

}  // namespace dpwa
