#include <doctest/doctest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/net/status_query.h"
#include "test/process/train_process.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/temporary_directory.h"

// dpwa-train with servers of the store: what a run says at its end, and workers that are frozen.
namespace dpwa {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t batch = 32;
constexpr std::uint64_t model_bytes = 101770 * 4;  // of the mlp
constexpr std::uint64_t model_keys = 4;

class TrainRun {
 public:
  TrainRun(std::size_t workers, const std::string& settings, const std::string& lost_after = "1s",
           std::size_t servers = 1)
      : run_(workers, "backend: kvstore\nkvstore: {lost_after_ms: " + lost_after +
                          ", servers: " + test::server_entries(servers) + ", " + settings + "}\n") {
    for (std::size_t i = 1; i <= servers; ++i) start_server("s" + std::to_string(i));
  }
  void start_server(const std::string& name = "s1") {
    processes_.erase(name);
    processes_.emplace(name, test::start_server(run_.file(), name));
  }
  void start(const std::string& name, int steps, const std::vector<std::string>& more = {},
             const std::string& step_ms = "10") {
    std::vector<std::string> options{
        "--steps", std::to_string(steps), "--step-time", step_ms, "--lr", "0.01"};
    options.insert(options.end(), more.begin(), more.end());
    processes_.erase(name);
    processes_.emplace(name, test::start_training(run_, name, options));
  }
  test::ChildProcess& at(const std::string& name) { return processes_.at(name); }
  bool has(const std::string& name, const std::string& words) const {
    return test::has(run_.log(name), words);
  }
  std::size_t count_of(const std::string& name, const std::string& words) const {
    return test::count_of(run_.log(name), words);
  }
  bool logs(const std::string& name, const std::string& words) const {
    return test::eventually([&] { return has(name, words); }, test::run_patience);
  }
  std::string all() const { return run_.logs() + run_.log("s1"); }

  std::string result_text(const std::string& name) const {
    return test::read_text(run_.directory() / (name + ".result.json"));
  }
  Json result(const std::string& name) const { return test::training_result(run_, name); }
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
  // So many more than it has made.
  bool makes_steps(const std::string& name, std::size_t more) const {
    const std::size_t wanted = steps(name).size() + more;
    return test::eventually([&] { return steps(name).size() >= wanted; }, test::run_patience);
  }
  // All end well, at this step and with the same model.
  void check_end(int last_step) {
    for (const std::string& name : run_.names()) {
      const auto code = at(name).wait(2 * test::run_patience);
      INFO(all());
      REQUIRE(code == 0);
    }
    const Json first = result("w1");
    INFO(all());
    for (const std::string& name : run_.names()) {
      const Json own = result(name);
      INFO(own.dump(2));
      CHECK(own["clock"] <= last_step + 1);  // a worker that returns after the end counts one more
      REQUIRE(own["averaged_model"].is_object());
      CHECK(own["averaged_model"]["test_loss"] == first["averaged_model"]["test_loss"]);
      CHECK_FALSE(has(name, "this node's last step"));
    }
  }
  std::string folder() const { return run_.directory(); }
  std::uint64_t updates() const { return server_status()["updates"]; }
  // The last one of the server, by number.
  std::uint64_t snapshots() const {
    const Json status = server_status();
    return status.contains("snapshot") ? status["snapshot"]["number"].get<std::uint64_t>() : 0;
  }

 private:
  Json server_status() const {
    const Config config = load_cluster(run_.file());
    const NodeEntry& server = config.kvstore.servers.front();
    const auto answers =
        query_status(config.cluster, {{"s1", {server.host}, server.port}}, test::patience, nullptr);
    return Json::parse(answers.front().json);
  }

  test::ClusterRun run_;
  std::map<std::string, test::ChildProcess> processes_;
};

}  // namespace

TEST_CASE("a worker that is told to stop while it waits at its end leaves, and counts") {
  TrainRun run(2, "type: dist_async");
  run.start("w1", 30, {"--schedule", "constant"});
  run.start("w2", 600, {"--schedule", "constant", "--min-nodes", "2"});
  REQUIRE(run.logs("s1", "worker 'w1' is done, and waits for the others"));
  run.at("w1").signal(SIGTERM);
  CHECK(run.at("w1").wait(test::run_patience) == 128 + SIGTERM);
  CHECK(run.result("w1")["interrupted"] == true);
  CHECK(run.result("w1")["averaged_model"].is_null());
  CHECK(run.at("w2").wait(test::run_patience) == 0);
  INFO(run.all());
  CHECK(run.has("s1", "worker 'w1' has left"));
  CHECK(run.result("w2")["averaged_model"]["participants"] == 2);
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
  // What is asked for again in a new epoch may come twice, and counts twice.
  CHECK(run.result("w1")["bytes_received"] >= steps * model_bytes);
  CHECK(run.result("w1")["bytes_received"] < (steps + 2) * model_bytes);
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
  CHECK(run.updates() <= (counted + run.count("w2", "dropped")) * model_keys);
}

TEST_CASE("a worker that is started again counts the steps and samples of its own process") {
  // w2 leaves first: what is pushed again in the epoch after an end counts twice as sent.
  const std::vector<std::string> names{"w2", "w1"};
  TrainRun run(2, "type: dist_sync");
  for (const std::string& name : names) run.start(name, 1'000'000);
  REQUIRE(run.has_made_steps("w2"));
  run.at("w2").signal(SIGKILL);
  REQUIRE(run.logs("w1", "worker 'w2' was left out"));
  run.start("w2", 1'000'000);
  const std::string kept = run.folder() + "/w2.metrics.1.jsonl";  // of the first process
  REQUIRE(test::eventually([&] { return std::filesystem::exists(kept); }, test::run_patience));
  REQUIRE(run.has_made_steps("w2"));
  for (const std::string& name : names) {
    run.at(name).signal(SIGTERM);
    REQUIRE(run.at(name).wait(test::run_patience) == 128 + SIGTERM);
  }
  INFO(run.all());
  const Json result = run.result("w2");
  CHECK(result["steps"] > result["steps_made"]);
  CHECK(run.steps("w2").size() == result["steps_made"]);
  CHECK(result["samples"] == result["steps_made"].get<std::uint64_t>() * batch);
  CHECK(result["bytes_sent"] == result["steps_made"].get<std::uint64_t>() * model_bytes);
  const Json of_first = run.result("w1");
  CHECK(of_first["samples"] == of_first["steps_made"].get<std::uint64_t>() * batch);
}

TEST_CASE("a worker that is started again after its end keeps the result, and has no warning") {
  constexpr int steps = 300;
  TrainRun run(1, "type: dist_sync", "20s");
  run.start("w1", steps);
  REQUIRE(run.at("w1").wait(test::run_patience) == 0);
  const std::string before = run.result_text("w1");
  run.start("w1", steps);
  REQUIRE(run.at("w1").wait(test::run_patience) == 0);
  INFO(run.all());
  CHECK(run.has("w1", "w1: nothing was left to train at step 300, and "));
  CHECK(run.result_text("w1") == before);
  const Json result = run.result("w1");
  CHECK(result["steps"] == steps);
  CHECK(result["steps_made"] == steps);
  CHECK(run.steps("w1").size() == steps);  // the lines of the first process
  CHECK(result["samples"] == steps * batch);
  CHECK(result["bytes_sent"] == steps * model_bytes);
  for (const std::string words : {"'w1' has left", "'w1' takes part from step "})
    CHECK(test::eventually([&] { return run.count_of("s1", words) == 2; }));
  for (const std::string name : {"w1", "s1"}) CHECK_FALSE(run.has(name, "left out"));
}

TEST_CASE("a worker that lost the final model takes it from a snapshot when it is started again") {
  bool has_snapshot = false;
  SUBCASE("the servers have one") {
    has_snapshot = true;
  }
  SUBCASE("they have none, which it says") {}
  const test::TemporaryDirectory folder;
  const std::string snapshots =
      ", snapshots: {folder: " + folder.path().string() + ", every_ms: 100}";
  TrainRun run(2, "type: dist_async, start_wait_ms: 8000" + (has_snapshot ? snapshots : ""));
  std::vector<std::string> more;  // where the servers have begun anew, or it would train again
  if (!has_snapshot) more = {"--checkpoint", run.folder()};
  run.start("w1", 30, more);
  run.start("w2", 100000);
  REQUIRE(test::eventually([&] { return run.result("w1").is_object(); }, test::run_patience));
  CHECK(run.result("w1")["lost_final_model"] == false);
  const std::uint64_t earlier = run.snapshots();
  if (has_snapshot)
    REQUIRE(test::eventually([&] { return run.snapshots() > earlier + 1; }, test::run_patience));
  for (const std::string name : {"s1", "w2"}) run.at(name).signal(SIGKILL);
  REQUIRE(run.at("w1").wait(test::run_patience) == 1);
  REQUIRE(run.result("w1")["lost_final_model"] == true);
  CHECK(run.result("w1")["averaged_model"].is_null());
  CHECK(run.has("w1", "the servers do not give the final model of all workers (server 's1': "));
  CHECK(run.has("w1", "; without the final model of all nodes\n"));

  run.start_server();
  if (!has_snapshot) more.emplace_back("--resume");
  run.start("w1", 30, more);
  run.start("w2", 30);
  const auto exit_code = run.at("w1").wait(test::run_patience);
  INFO(run.all());
  CHECK(exit_code == (has_snapshot ? 0 : 1));
  const Json result = run.result("w1");
  CHECK(result["samples"] == 30 * batch);
  CHECK(result["steps_made"] == 30);
  CHECK(result["lost_final_model"] == !has_snapshot);
  CHECK(result["averaged_model"].is_object() == has_snapshot);
  CHECK(run.has("w1", "and the servers have none either: they have begun anew since") !=
        has_snapshot);
}

TEST_CASE("a frozen worker that wakes goes on at the step of the others") {
  TrainRun run(3, "type: dist_sync", "1s", 2);
  for (const std::string name : {"w1", "w2", "w3"}) run.start(name, 600);
  REQUIRE(run.makes_steps("w3", 30));
  run.at("w3").signal(SIGSTOP);
  REQUIRE(run.logs("w1", "worker 'w3' was left out"));
  REQUIRE(run.makes_steps("w1", 60));  // which it misses
  run.at("w3").signal(SIGCONT);
  run.check_end(600);
  CHECK(run.logs("w3", "continues at step"));
}

TEST_CASE("a frozen worker that wakes after the end takes the final weights") {
  TrainRun run(3, "type: dist_sync", "1s", 2);
  for (const std::string name : {"w1", "w2", "w3"}) run.start(name, 200);
  REQUIRE(run.makes_steps("w3", 30));
  run.at("w3").signal(SIGSTOP);
  for (const std::string name : {"w1", "w2"})
    REQUIRE(run.at(name).wait(2 * test::run_patience) == 0);
  run.at("w3").signal(SIGCONT);
  run.check_end(200);
}

// It waits for the long step of the first worker, because its weights have to include it.
TEST_CASE("a worker that is told to stop during its start tells the servers") {
  TrainRun run(2, "type: dist_sync, min_workers: 1", "20s");
  run.start("w1", 1000, {}, "8000");
  REQUIRE(run.logs("w1", "takes part from step"));
  run.start("w2", 1000);
  REQUIRE(run.logs("s1", "worker 'w2' takes part from step"));
  run.at("w2").signal(SIGTERM);
  CHECK(run.at("w2").wait(test::run_patience) == 128 + SIGTERM);
  CHECK(run.logs("s1", "worker 'w2' has left"));
  INFO(run.all());
  CHECK_FALSE(run.has("s1", "left out"));
}

}  // namespace dpwa
