#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/process/cluster_run.h"

// Variational inference by processes: one model whose posterior is known, under each back end.
namespace dpwa {
namespace {

struct BackEnd {
  std::string settings;     // of the cluster file
  std::size_t servers = 0;  // of the parameter server
};

const BackEnd null{"backend: \"null\""};
// The nodes train apart; the final average of natural parameters is exact.
const BackEnd gossip{"gossip: {pull_probability: 0, finish_wait_ms: 60s}"};
const BackEnd collective{"backend: collective\ncollective: {start_wait_ms: 60s}"};
const BackEnd kvstore{"backend: kvstore", 2};

std::string servers_of(const BackEnd& back_end) {
  if (back_end.servers == 0) return {};
  return "\nkvstore: {start_wait_ms: 60s, lost_after_ms: 30s, servers: " +
         test::server_entries(back_end.servers) + "}";
}

class Nodes {
 public:
  Nodes(const BackEnd& back_end, std::size_t count)
      : run_(count, back_end.settings + servers_of(back_end)) {
    for (std::size_t i = 1; i <= back_end.servers; ++i) {
      const std::string name = "s" + std::to_string(i);
      servers_.emplace_back(
          std::vector<std::string>{DPWA_CLI, "kvserver", "--config", run_.file(), "--name", name},
          run_.directory() / (name + ".log"));
    }
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

void find_posterior(const BackEnd& back_end, std::size_t count) {
  Nodes nodes(back_end, count);
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

}  // namespace

TEST_CASE("the exact posterior is found by one process without a network") {
  find_posterior(null, 1);
}

TEST_CASE("the exact posterior is found by three processes that gossip") {
  find_posterior(gossip, 3);
}

TEST_CASE("the exact posterior is found by three processes of backend collective") {
  find_posterior(collective, 3);
}

TEST_CASE("the exact posterior is found by three workers of a parameter server") {
  find_posterior(kvstore, 3);
}

TEST_CASE("workers of backend collective that hold other data are refused in one line") {
  Nodes nodes(collective, 2);
  nodes.start({"60", "61"});
  const auto codes = nodes.wait();
  const std::string logs = nodes.logs();
  INFO(logs);
  CHECK(codes == std::vector<int>{1, 1});
  CHECK(logs.find("float64[60, 3], float64[60]") != std::string::npos);
  CHECK(logs.find("float64[61, 3], float64[61]") != std::string::npos);
}

}  // namespace dpwa
