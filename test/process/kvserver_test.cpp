#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "dpwa/net/status_query.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/process/cluster_run.h"

// Servers of the store as processes, which are killed and stopped while a worker trains.

namespace dpwa {
namespace {

using kvstore::Key;
using test::holds_in_time;

class ServerProcesses {
 public:
  explicit ServerProcesses(const Config& config) : config_(config) {
    std::string name = "/tmp/dpwa_kvserver.XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory_ = name;
    std::ofstream(directory_ / "cluster.yaml") << to_yaml(with_ports(config));
    for (const NodeEntry& server : config.kvstore.servers) start(server.name);
  }
  ~ServerProcesses() {
    processes_.clear();
    std::filesystem::remove_all(directory_);
  }

  void start(const std::string& name) {
    processes_.erase(name);
    processes_.emplace(
        name, test::ChildProcess({DPWA_CLI, "kvserver", "--config",
                                  (directory_ / "cluster.yaml").string(), "--name", name},
                                 directory_ / (name + ".log")));
  }
  test::ChildProcess& at(const std::string& name) { return processes_.at(name); }

  nlohmann::json status(const std::string& name) const {
    const auto& servers = config_.kvstore.servers;
    const auto entry = std::ranges::find(servers, name, &NodeEntry::name);
    const auto answers = query_status(config_.cluster, {{name, {entry->host}, entry->port}},
                                      std::chrono::seconds(2), nullptr);
    return nlohmann::json::parse(answers.front().json, nullptr, false);
  }
  // Up, and every slice that workers find at a server lies on another one as well.
  bool whole() const {
    return std::ranges::all_of(config_.kvstore.servers, [&](const NodeEntry& server) {
      const auto found = status(server.name);
      return found.is_object() && found["state"] == "up" && found["without_replica"] == 0;
    });
  }
  std::string log(const std::string& name) const {
    std::ifstream file(directory_ / (name + ".log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  // The nodes of these tests do not listen, but a file has a port for each.
  static Config with_ports(Config config) {
    std::uint16_t port = 1;
    for (NodeEntry& node : config.nodes) node.port = port++;
    return config;
  }

  const Config config_;
  std::filesystem::path directory_;
  std::map<std::string, test::ChildProcess> processes_;
};

Config replicated() {
  Config config = test::store_config(2, KvstoreType::dist_async);
  config.kvstore.replicas = 1;
  return config;
}

// Some keys, whose homes are both servers. Every push takes 1 from each value.
struct Training {
  explicit Training(const Config& config) : worker(config, "w1") {
    REQUIRE(worker.joined());
    for (int key = 0; key < keys; ++key) REQUIRE(worker.init(Key(key), {0}));
  }
  // False: a push was not acknowledged.
  bool steps(std::uint64_t count) {
    for (const std::uint64_t end = step + count; step < end; ++step) {
      for (int key = 0; key < keys; ++key) {
        if (!worker.push(Key(key), step, {1}, 1)) return false;
      }
    }
    return true;
  }
  // Each acknowledged update was made, and once.
  bool nothing_lost() {
    for (int key = 0; key < keys; ++key) {
      const auto values = worker.pull(Key(key), step);
      CHECK(values == std::vector<float>{-static_cast<float>(step)});
    }
    return true;
  }

  static constexpr int keys = 4;
  test::StoreWorker worker;
  std::uint64_t step = 0;
};

}  // namespace

TEST_CASE("kill -9 of each server in turn loses no acknowledged update, and each is filled again") {
  const Config config = replicated();
  ServerProcesses servers(config);
  Training training(config);
  REQUIRE(training.steps(20));
  for (const std::string name : {"s1", "s2"}) {
    CAPTURE(name);
    REQUIRE(holds_in_time([&] { return servers.whole(); }));
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in the middle of pushes
      servers.at(name).signal(SIGKILL);
    });
    const bool acknowledged = training.steps(100);
    killer.join();
    REQUIRE(acknowledged);
    training.nothing_lost();
    servers.start(name);
    REQUIRE(training.steps(20));  // while it is filled
  }
  CHECK(holds_in_time([&] { return servers.whole(); }));
  training.nothing_lost();
}

TEST_CASE("a server that was stopped and wakes is refused, begins again and is filled") {
  const Config config = replicated();
  ServerProcesses servers(config);
  Training training(config);
  REQUIRE(training.steps(5));
  REQUIRE(holds_in_time([&] { return servers.whole(); }));
  servers.at("s1").signal(SIGSTOP);
  REQUIRE(training.steps(20));
  const std::uint64_t incarnation = training.worker.epoch().servers[0].id.incarnation;
  servers.at("s1").signal(SIGCONT);
  REQUIRE(holds_in_time([&] { return servers.whole(); }));
  CHECK(training.worker.epoch().servers[0].id.incarnation > incarnation);
  CHECK(servers.log("s1").find("begins again, empty") != std::string::npos);
  REQUIRE(training.steps(20));
  training.nothing_lost();
}

TEST_CASE("a server ends with SIGTERM, and names what is wrong with its file or its name") {
  const Config config = test::store_config(1);
  ServerProcesses servers(config);
  REQUIRE(holds_in_time([&] { return servers.status("s1").is_object(); }));
  CHECK(servers.status("s1")["state"] == "starting");
  servers.at("s1").signal(SIGTERM);
  CHECK(servers.at("s1").wait(test::run_patience) == 128 + SIGTERM);
  CHECK(servers.log("s1").find("listens on port") != std::string::npos);

  servers.start("s7");
  CHECK(servers.at("s7").wait(test::run_patience) == 2);
  CHECK(servers.log("s7").find("kvstore.servers: no server is named 's7'; did you mean 's1'?") !=
        std::string::npos);
}

}  // namespace dpwa
