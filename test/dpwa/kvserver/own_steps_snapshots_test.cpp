#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvserver/store_server.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/net/status_query.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

// Snapshots of servers whose workers count the steps of each key apart, as the class KVStore does,
// and save and load the state of the optimizer meanwhile.

namespace dpwa {
namespace {

using kvclient::Outcome;
using kvclient::StoreClient;
using kvclient::Ticket;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t workers = 2;
// How often each is pushed: in every round, and in each third one.
constexpr std::array<int, 2> every{1, 3};

TimePoint in_time() {
  return SteadyClock::now() + std::chrono::seconds(60);
}

kvstore::OptimizerOptions momentum() {
  auto options = kvstore::default_options(kvstore::OptimizerKind::momentum);
  options.learning_rate = 0.125;
  options.momentum = 0.5;
  return options;
}

// The value after so many steps in which each of so many workers has pushed a 1.
float value_after(std::uint64_t steps, float pushes = workers) {
  const auto options = momentum();
  std::vector<float> value(2, 0);
  const std::vector<float> sum(2, pushes);
  kvstore::OptimizerState state;
  for (std::uint64_t step = 0; step < steps; ++step)
    kvstore::apply_update(options, DType::float32, std::as_writable_bytes(std::span(value)),
                          std::as_bytes(std::span(sum)), 1, state);
  return value.front();
}

struct Client {
  Client(const Config& config, const std::string& name) {
    kvclient::StoreClientOptions options;
    options.cluster = config.cluster;
    options.self = {name, wall_clock_us()};
    for (const NodeEntry& server : config.kvstore.servers)
      options.servers.push_back({server.name, {server.host}, server.port});
    options.engine.replicas = true;
    options.engine.own_steps = true;
    options.engine.beat = std::chrono::milliseconds(20);
    options.engine.resend = std::chrono::milliseconds(200);
    options.engine.step_pause = std::chrono::minutes(1);  // on a loaded machine, too
    client = std::make_unique<StoreClient>(options);
    client->join();
  }
  Outcome outcome(Ticket ticket) {
    auto outcome = client->wait(ticket, in_time());
    REQUIRE(outcome);
    REQUIRE_FALSE(outcome->left_out);
    INFO(outcome->problem);
    REQUIRE_FALSE(kvstore::is_error(outcome->kind));
    return *std::move(outcome);
  }
  void init() {
    REQUIRE(client->wait_joined(in_time()));
    const std::array<float, 2> zeros{};
    std::vector<Ticket> tickets;
    for (std::size_t key = 0; key < every.size(); ++key)
      tickets.push_back(client->init(static_cast<std::int64_t>(key), {DType::float32, {2}},
                                     std::as_bytes(std::span(zeros))));
    for (std::size_t key = 0; key < every.size(); ++key)
      steps[key] = outcome(tickets[key]).next_step;
  }
  Ticket push(std::size_t key, bool begins_step = true) {
    kvclient::PushTerms terms;
    terms.step = steps[key]++;
    if (begins_step) client->begin_step();
    const auto form = kvstore::encode(momentum());
    terms.optimizer.assign(form.begin(), form.end());
    return client->push(static_cast<std::int64_t>(key), std::as_bytes(std::span(ones)), terms);
  }
  float value(std::size_t key) {
    const Outcome pulled = outcome(client->pull(static_cast<std::int64_t>(key), steps[key]));
    REQUIRE(pulled.values.size() == 1);
    REQUIRE(pulled.values[0]);
    float first = 0;
    std::memcpy(&first, pulled.values[0]->data(), sizeof first);
    return first;
  }
  // As save_optimizer_states and load_optimizer_states.
  void save_and_load(std::size_t key) {
    const auto number = static_cast<std::int64_t>(key);
    const Outcome saved = outcome(client->ask_states(number));
    REQUIRE(saved.states.size() == 1);
    CHECK(saved.states[0].steps == steps[key]);
    outcome(client->place_states(number, saved.states));
  }

  static constexpr std::array<float, 2> ones{1, 1};
  std::unique_ptr<StoreClient> client;
  std::array<std::uint64_t, every.size()> steps{};
};

struct Store {
  explicit Store(Config its_config) : config(std::move(its_config)) {
    for (const NodeEntry& server : config.kvstore.servers) start(server.name);
  }
  void start(const std::string& name) {
    servers[name] = std::make_unique<kvserver::StoreServer>(config, name);
    servers[name]->start();
  }
  // The last snapshot that all servers have; 0: none.
  unsigned snapshot() const {
    const NodeEntry& first = config.kvstore.servers.front();
    const auto answers = query_status(config.cluster, {{first.name, {first.host}, first.port}},
                                      test::patience, nullptr);
    const auto status = nlohmann::json::parse(answers.front().json, nullptr, false);
    return status.is_object() ? status["snapshot"]["number"].get<unsigned>() : 0;
  }

  const Config config;
  std::map<std::string, std::unique_ptr<kvserver::StoreServer>> servers;
};

struct Training {
  explicit Training(const Config& config) {
    for (const char* name : {"w1", "w2"}) clients.emplace_back(config, name);
    for (Client& each : clients) each.init();
  }
  void round() {
    std::vector<std::pair<Client*, Ticket>> pushes;
    for (std::size_t key = 0; key < every.size(); ++key) {
      if (rounds % every[key] != 0) continue;
      for (Client& each : clients) pushes.emplace_back(&each, each.push(key));
    }
    // A push of a merged type is over when a pull beyond it is.
    check_values();
    for (const auto& [client, ticket] : pushes) client->outcome(ticket);
    if (rounds++ % 5 == 0) clients[0].save_and_load(rounds % every.size());
  }
  void check_values() {
    for (std::size_t key = 0; key < every.size(); ++key) {
      for (Client& each : clients) CHECK(each.value(key) == value_after(each.steps[key]));
    }
  }
  bool until(const std::function<bool()>& condition) {
    return test::eventually(
        [&] {
          round();
          return condition();
        },
        std::chrono::seconds(60));
  }

  std::vector<Client> clients;
  int rounds = 0;
};

}  // namespace

TEST_CASE(
    "steps of each key, saved states and snapshots go together, also while a server is gone") {
  const test::TemporaryDirectory folder;
  Config config = test::store_config(2);
  config.kvstore.min_workers = workers;
  config.kvstore.replicas = 1;
  config.kvstore.snapshots.folder = folder.path().string();
  config.kvstore.snapshots.every = std::chrono::milliseconds(50);
  std::array<std::uint64_t, every.size()> last{};
  {
    Store store(config);
    Training training(config);
    REQUIRE(training.until([&] { return store.snapshot() >= 3; }));
    // None begins while a server is gone, and they go on when it is back.
    store.servers.erase("s2");
    for (int round = 0; round < 20; ++round) training.round();
    const unsigned before = store.snapshot();
    for (int round = 0; round < 20; ++round) training.round();
    CHECK(store.snapshot() == before);
    store.start("s2");
    REQUIRE(training.until([&] { return store.snapshot() > before + 1; }));
    last = training.clients[0].steps;
  }
  const Store store(config);
  Training training(config);
  CHECK(store.snapshot() > 0);
  for (std::size_t key = 0; key < every.size(); ++key) {
    CAPTURE(key);
    CHECK(training.clients[0].steps[key] > 0);
    CHECK(training.clients[0].steps[key] <= last[key]);
    CHECK(training.clients[0].steps[key] == training.clients[1].steps[key]);
  }
  training.check_values();
  for (int round = 0; round < 10; ++round) training.round();
}

TEST_CASE("a worker that joins within a step of the others begins with the next, in all keys") {
  Config config = test::store_config(2);
  config.kvstore.min_workers = 1;
  const Store store(config);
  Client first(config, "w1");
  first.init();
  first.push(0);
  CHECK(first.value(0) == value_after(1, 1));
  Client second(config, "w2");
  std::thread joins([&] { second.init(); });
  CHECK(test::eventually([&] { return first.client->workers().size() == 2; }));
  first.push(1, /*begins_step=*/false);
  CHECK(first.value(1) == value_after(1, 1));  // it does not wait for the other
  first.client->begin_step();
  joins.join();
  for (std::size_t key = 0; key < every.size(); ++key) {
    CHECK(second.steps[key] == 1);
    for (Client* each : {&first, &second}) each->push(key, /*begins_step=*/false);
  }
  for (std::size_t key = 0; key < every.size(); ++key) CHECK(first.value(key) == second.value(key));
}

}  // namespace dpwa
