#include "dpwa/kvserver/store_server.h"

#include <doctest/doctest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "dpwa/base/resolve_host.h"
#include "dpwa/base/trace.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/net/status_query.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"

using namespace dpwa;

namespace {

nlohmann::json status_of(const Config& config, std::size_t server) {
  const NodeEntry& entry = config.kvstore.servers[server];
  const auto answers = query_status(config.cluster, {{entry.name, {entry.host}, entry.port}},
                                    test::patience, nullptr);
  return nlohmann::json::parse(answers.front().json);
}

struct Servers {
  explicit Servers(const Config& config) {
    for (const NodeEntry& server : config.kvstore.servers) {
      all.push_back(std::make_unique<kvserver::StoreServer>(config, server.name));
      all.back()->start();
    }
  }
  std::vector<std::unique_ptr<kvserver::StoreServer>> all;
};

}  // namespace

TEST_CASE("a worker that inits, pushes and pulls a key gets the value after its push") {
  const Config config = test::store_config(1);
  const Servers servers(config);
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  REQUIRE(worker.init(kvstore::Key(1), {1, 2, 3}));
  CHECK(worker.pull(kvstore::Key(1), 0) == std::vector<float>{1, 2, 3});
  REQUIRE(worker.push(kvstore::Key(1), 0, {2, 2, 2}, 0.5));
  CHECK(worker.pull(kvstore::Key(1), 1) == std::vector<float>{0, 1, 2});

  const auto status = status_of(config, 0);
  CHECK(status["node"] == "s1");
  CHECK(status["state"] == "up");
  CHECK(status["slices"] == 1);
  CHECK(status["updates"] == 1);
  CHECK(status["workers"][0]["name"] == "w1");
}

TEST_CASE("a trace of a server has the pushes and pulls of its workers, until they are answered") {
  const Config config = test::store_config(1);
  const Servers servers(config);
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  REQUIRE(worker.init(kvstore::Key("a"), {1}));
  const auto begun = std::chrono::steady_clock::now();
  own_trace().record(begun, Trace::longest);
  REQUIRE(worker.push(kvstore::Key("a"), 0, {2}, 0.5));
  CHECK(worker.pull(kvstore::Key("a"), 1) == std::vector<float>{0});
  const auto spans = own_trace().page(0, 100, begun).spans;
  own_trace().page(0, 100, begun + Trace::longest);
  REQUIRE(spans.size() == 2);
  for (const std::size_t at : {0, 1}) {
    CHECK(spans[at].track == Track::store);
    CHECK(spans[at].name == std::string(at == 0 ? "push" : "pull"));
    CHECK(std::string(spans[at].about.data()) == "'a' of w1");
    CHECK(spans[at].begin >= begun);
  }
}

TEST_CASE("servers that have moved since the file was read are found by workers and one another") {
  const ResolverDouble resolver([](const std::string& host) {
    return Resolved{{host == "s1.test" ? "127.0.0.2" : "127.0.0.12"}, ""};
  });
  Config config = test::store_config(2);
  for (NodeEntry& server : config.kvstore.servers) {
    server.host = server.name + ".test";
    server.addresses = {"127.0.0.9"};  // at that time
  }
  const auto bound_to = [&](std::size_t server, const std::string& address) {
    Config own = config;
    own.kvstore.servers[server].bind_address = address;
    return own;
  };
  kvserver::StoreServer first(bound_to(0, "127.0.0.2"), "s1");
  kvserver::StoreServer second(bound_to(1, "127.0.0.12"), "s2");
  first.start();
  second.start();
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  REQUIRE(worker.init(kvstore::Key(1), {1, 2, 3}));
  CHECK(worker.pull(kvstore::Key(1), 0) == std::vector<float>{1, 2, 3});
}

TEST_CASE("a second process with the name of a worker waits until the first one has ended") {
  const Config config = test::store_config(1);
  const Servers servers(config);
  const kvstore::Key key(1);
  auto first = std::make_unique<test::StoreWorker>(config, "w1");
  REQUIRE(first->joined());
  REQUIRE(first->init(key, {0}));
  test::StoreWorker second(config, "w1");
  CHECK(second.refusal() == "another process takes part as worker 'w1'");
  for (std::uint64_t step = 0; step < 20; ++step) CHECK(first->push(key, step, {1}, 1));
  CHECK(first->pull(key, 20) == std::vector<float>{-20});
  CHECK(first->epoch().worker("w1")->first_step == 0);  // it was never left out
  first.reset();
  CHECK(second.joined());
}

TEST_CASE("processes that start before a server are no reason for a warning yet") {
  const test::LogFile log;
  const Config config = test::store_config(2);
  kvserver::StoreServer first(config, "s1");
  first.start();
  REQUIRE(
      test::eventually([&] { return log.has("not there yet: server 's2': Connection refused"); }));
  {
    kvserver::StoreServer second(config, "s2");
    second.start();
    REQUIRE(test::eventually([&] { return log.has("connected to server 's2'"); }));
    CHECK(log.count("not there yet") == 1);
    CHECK_FALSE(log.has(" warning "));
  }
  CHECK(test::eventually([&] { return log.has("cannot reach server 's2': Connection refused"); }));
}

TEST_CASE("a large key lies on two servers, with a replica of each part on the other") {
  Config config = test::store_config(2);
  config.kvstore.replicas = 1;
  config.kvstore.lost_after = std::chrono::seconds(20);  // the thread sanitizer takes its time
  const Servers servers(config);
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  const std::vector<float> ones(1'500'000, 1);
  REQUIRE(worker.init(kvstore::Key("large"), ones));
  REQUIRE(worker.push(kvstore::Key("large"), 0, ones, 0.5));
  CHECK(worker.pull(kvstore::Key("large"), 1) == std::vector<float>(1'500'000, 0.5F));
  const std::size_t slices = kvstore::cut_into_slices(kvstore::Key("large"), ones.size(), 2).size();
  for (const std::size_t server : {0, 1}) {
    const auto status = status_of(config, server);
    CHECK(status["slices"] == slices);
    CHECK(status["updates"] == slices / 2);
    CHECK(status["without_replica"] == 0);
  }
}

TEST_CASE("the answer to a push without an optimizer names key and worker under dist_async") {
  const Config config = test::store_config(1, KvstoreType::dist_async);
  const Servers servers(config);
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  REQUIRE(worker.init(kvstore::Key(7), {1}));
  worker.call([](kvstore::WorkerEngine& engine) {
    kvstore::Push push;
    push.slice = {kvstore::Key(7), 0};
    push.values.resize(4);
    engine.push(std::move(push));
  });
  CHECK(worker.problem() == "key 7, worker w1: an update at each push needs an optimizer");
}

TEST_CASE("a server that ends and comes back empty is filled by the other one") {
  Config config = test::store_config(2);
  config.kvstore.replicas = 1;
  Servers servers(config);
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  const kvstore::Key key(3);
  REQUIRE(worker.init(key, {0, 0}));
  REQUIRE(worker.push(key, 0, {1, 2}, 1));
  for (const std::size_t ends : {0, 1}) {
    servers.all[ends].reset();
    const std::uint64_t step = 1 + 2 * ends;
    REQUIRE(worker.push(key, step, {1, 2}, 1));  // the other one answers
    servers.all[ends] =
        std::make_unique<kvserver::StoreServer>(config, config.kvstore.servers[ends].name);
    servers.all[ends]->start(test::patience);
    CHECK(test::eventually([&] {
      const auto epoch = worker.epoch();
      return epoch.servers[ends].state == kvstore::ServerState::up;
    }));
    REQUIRE(worker.push(key, step + 1, {1, 2}, 1));
  }
  CHECK(worker.pull(key, 5) == std::vector<float>{-5, -10});
}
