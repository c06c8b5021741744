#include <doctest/doctest.h>
#include <signal.h>

#include <thread>
#include <vector>

#include "dpwa/security/key_file.h"
#include "dpwa/wire/messages.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/process/cluster_run.h"
#include "test/process/server_processes.h"
#include "test/support/certificates.h"
#include "test/support/raw_socket.h"

// Servers of the store as processes, which are killed and stopped while a worker trains.

namespace dpwa {
namespace {

using kvstore::Key;
using test::holds_in_time;
using test::ServerProcesses;

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

TEST_CASE("noise, half frames and a wrong key at the port of a server cost its workers nothing") {
  Config config = replicated();
  const test::SecretFolder keys;
  SUBCASE("without security") {}
  SUBCASE("with the key of the cluster") {
    config.security.mode = "psk";
    config.security.key_file = keys.write("cluster.key", key_file_text({new_key()}).text());
  }
  ServerProcesses servers(config);
  Training training(config);
  REQUIRE(training.steps(5));
  // First, because refusals of one kind from one address share a line of the log each minute.
  if (!config.security.mode.empty()) {
    Config wrong = config;
    wrong.security.key_file = keys.write("wrong.key", key_file_text({new_key()}).text());
    const test::StoreWorker intruder(wrong, "w2");
    REQUIRE(holds_in_time([&] { return servers.count("s1", "has another cluster key") > 0; }));
    REQUIRE(training.steps(10));
    CHECK(training.worker.epoch().worker("w2") == nullptr);
  }
  const std::uint16_t port = config.kvstore.servers.front().port;
  std::vector<std::byte> noise(4096);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(i * 167 + 13);
  wire::Hello hello;
  hello.cluster = config.cluster;
  hello.node = "w1";
  hello.incarnation = 1;
  const std::vector<std::byte> frame = wire::encode(hello, 1);
  std::vector<test::RawSocket> half;  // that stay open
  for (int times = 0; times < 20; ++times) {
    test::RawSocket loud(port);
    CHECK(loud.send(std::span(noise).subspan(static_cast<std::size_t>(times) * 100)));
    half.emplace_back(port);
    CHECK(half.back().send(std::span(frame).first(frame.size() / 2)));
    REQUIRE(training.steps(2));
  }
  CHECK(servers.at("s1").running());
  CHECK(training.nothing_lost());
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
