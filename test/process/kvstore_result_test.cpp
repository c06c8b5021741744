#include <doctest/doctest.h>
#include <signal.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/net/status_query.h"
#include "test/process/cluster_run.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"

// What dpwa-train says at the end of a run with servers of the store.
namespace dpwa {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t batch = 32;
constexpr std::uint64_t model_bytes = 101770 * 4;  // of the mlp
constexpr std::uint64_t model_keys = 4;

class TrainRun {
 public:
  TrainRun(std::size_t workers, const std::string& settings)
      : run_(workers, "backend: kvstore\nkvstore: {lost_after_ms: 1000, servers: " +
                          test::server_entries(1) + ", " + settings + "}\n") {
    processes_.emplace("s1", test::start_server(run_.file(), "s1"));
  }
  void start(const std::string& name, int steps, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command{DPWA_TRAIN,
                                     "--config",
                                     run_.file(),
                                     "--name",
                                     name,
                                     "--data",
                                     "synthetic",
                                     "--steps",
                                     std::to_string(steps),
                                     "--threads",
                                     "1",
                                     "--step-time",
                                     "10",
                                     "--lr",
                                     "0.01",
                                     "--run-dir",
                                     run_.directory()};
    command.insert(command.end(), more.begin(), more.end());
    processes_.erase(name);
    processes_.emplace(name, test::ChildProcess(command, run_.directory() / (name + ".log")));
  }
  test::ChildProcess& at(const std::string& name) { return processes_.at(name); }
  bool has(const std::string& name, const std::string& words) const {
    return run_.log(name).find(words) != std::string::npos;
  }
  bool logs(const std::string& name, const std::string& words) const {
    return test::eventually([&] { return has(name, words); }, test::run_patience);
  }
  std::string all() const { return run_.logs() + run_.log("s1"); }

  std::string result_text(const std::string& name) const {
    std::ifstream file(run_.directory() / (name + ".result.json"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Json result(const std::string& name) const {
    return Json::parse(result_text(name), nullptr, false);
  }
  std::vector<Json> steps(const std::string& name) const {
    std::vector<Json> found;
    std::ifstream file(run_.directory() / (name + ".metrics.jsonl"));
    for (std::string line; std::getline(file, line) && !file.eof();) {
      Json json = Json::parse(line);
      if (json.contains("outcome")) found.push_back(std::move(json));
    }
    return found;
  }
  std::uint64_t sum(const std::string& name, const char* key) const {
    std::uint64_t all = 0;
    for (const Json& line : steps(name)) all += line.value(key, std::uint64_t{0});
    return all;
  }
  std::uint64_t count(const std::string& name, const std::string& outcome) const {
    std::uint64_t all = 0;
    for (const Json& line : steps(name)) all += line["outcome"] == outcome ? 1 : 0;
    return all;
  }
  bool has_made_steps(const std::string& name) const {
    return test::eventually([&] { return steps(name).size() > 30; }, test::run_patience);
  }
  // Of the server.
  std::uint64_t updates() const {
    const Config config = load_cluster(run_.file());
    const NodeEntry& server = config.kvstore.servers.front();
    const auto answers = query_status(config.cluster, {{"s1", {server.host}, server.port}},
                                      std::chrono::seconds(2), nullptr);
    return Json::parse(answers.front().json)["updates"];
  }

 private:
  test::ClusterRun run_;
  std::map<std::string, test::ChildProcess> processes_;
};

}  // namespace

TEST_CASE("a worker that cannot take the final weights says so and fails") {
  TrainRun run(2, "type: dist_async, start_wait_ms: 2000");
  run.start("w1", 30);
  run.start("w2", 100000);
  REQUIRE(test::eventually([&] { return run.result("w1").is_object(); }, test::run_patience));
  CHECK(run.result("w1")["lost_final_model"] == false);
  run.at("s1").signal(SIGKILL);
  CHECK(run.at("w1").wait(test::run_patience) == 1);
  INFO(run.all());
  CHECK(run.has("w1", "the servers do not give the final model of all workers (server 's1': "));
  CHECK(run.has("w1", "; without the final model of all nodes\n"));
  CHECK(run.result("w1")["lost_final_model"] == true);
  CHECK(run.result("w1")["averaged_model"].is_null());
  run.at("w2").signal(SIGKILL);
}

TEST_CASE("samples and bytes of a worker that was left out are those that counted") {
  constexpr int steps = 400;
  TrainRun run(2, "type: dist_async, compression: {type: 2bit}");
  for (const std::string name : {"w1", "w2"}) run.start(name, steps);
  REQUIRE(run.has_made_steps("w2"));
  run.at("w2").signal(SIGSTOP);
  REQUIRE(run.logs("w1", "worker 'w2' was left out"));
  run.at("w2").signal(SIGCONT);
  for (const std::string name : {"w1", "w2"}) REQUIRE(run.at(name).wait(test::run_patience) == 0);
  INFO(run.all());
  CHECK(run.result("w1")["samples"] == steps * batch);
  CHECK(run.result("w1")["steps_made"] == steps);
  CHECK(run.result("w1")["bytes_received"] == steps * model_bytes);
  CHECK(run.result("w2")["steps_made"] < steps);
  std::uint64_t counted = 0;
  for (const std::string name : {"w1", "w2"}) {
    const Json result = run.result(name);
    CAPTURE(name);
    CHECK(result["samples"] == run.count(name, "updated") * batch);
    CHECK(result["bytes_received"] == run.sum(name, "bytes"));
    CHECK(result["bytes_sent"] == run.sum(name, "sent"));
    counted += run.count(name, "updated");
    // Two bits for each element, and a little for each key.
    const auto sent = run.steps(name).front()["sent"].get<std::uint64_t>();
    CHECK(sent >= model_bytes / 16);
    CHECK(sent < model_bytes / 15);
  }
  // Some pushes of a step that was dropped may have come in time.
  CHECK(run.updates() >= counted * model_keys);
  CHECK(run.updates() <= (counted + run.count("w2", "late")) * model_keys);
}

TEST_CASE("a worker that was started again counts the samples of its own process") {
  constexpr int steps = 300;
  TrainRun run(2, "type: dist_sync");
  for (const std::string name : {"w1", "w2"}) run.start(name, steps);
  REQUIRE(run.has_made_steps("w2"));
  run.at("w2").signal(SIGKILL);
  REQUIRE(run.logs("w1", "worker 'w2' was left out"));
  run.start("w2", steps);
  for (const std::string name : {"w1", "w2"}) REQUIRE(run.at(name).wait(test::run_patience) == 0);
  const Json result = run.result("w2");
  INFO(run.all());
  CHECK(result["steps"] == steps);
  CHECK(result["steps_made"] < steps);
  CHECK(result["samples"] == result["steps_made"].get<std::uint64_t>() * batch);
  CHECK(result["bytes_sent"] == result["steps_made"].get<std::uint64_t>() * model_bytes);
  CHECK(run.result("w1")["samples"] == steps * batch);
}

TEST_CASE("a run that has ended and is started again keeps its result") {
  TrainRun run(1, "type: dist_sync");
  run.start("w1", 20);
  REQUIRE(run.at("w1").wait(test::run_patience) == 0);
  const std::string result = run.result_text("w1");
  CHECK(run.result("w1")["samples"] == 20 * batch);
  run.start("w1", 20);
  CHECK(run.at("w1").wait(test::run_patience) == 0);
  INFO(run.all());
  CHECK(run.has("w1", "w1: nothing was left to train at step 20, and "));
  CHECK(run.result_text("w1") == result);
}

}  // namespace dpwa
