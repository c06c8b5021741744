#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dpwa/base/on_exit.h"
#include "dpwa/base/time.h"
#include "dpwa/kvclient/client_options.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvserver/store_server.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/process/wall_clock.h"
#include "test/support/eventually.h"

// Who gets a name: processes that start again, also under an earlier clock, and others of that
// name.

namespace dpwa {
namespace {

using kvclient::StoreClient;
using kvserver::StoreServer;

constexpr std::uint64_t minute_us = 60'000'000;
const kvstore::Key key(3);

TimePoint patience() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

struct Servers {
  explicit Servers(const Config& its_config) : config(its_config) {
    for (std::size_t i = 0; i < config.kvstore.servers.size(); ++i) start(i);
  }
  void start(std::size_t i) {
    all.resize(config.kvstore.servers.size());
    all[i].reset();
    all[i] = std::make_unique<StoreServer>(config, config.kvstore.servers[i].name);
    all[i]->start(test::patience);
  }
  const Config config;
  std::vector<std::unique_ptr<StoreServer>> all;
};

std::unique_ptr<StoreClient> client_of(Config config, std::uint64_t incarnation) {
  config.self = "w1";
  auto options = kvclient::client_options(config, nullptr);
  options.self.incarnation = incarnation;
  auto client = std::make_unique<StoreClient>(std::move(options));
  client->join();
  return client;
}

bool init(StoreClient& client) {
  const std::array<float, 2> values{1, 2};
  const kvstore::ValueSpec spec{DType::float32, {2}};
  const auto outcome =
      client.wait(client.init(key, spec, std::as_bytes(std::span(values))), patience());
  return outcome && outcome->kind == kvstore::AnswerKind::created;
}

bool is_refused(StoreClient& client, const std::string& problem) {
  return test::eventually([&] {
    const auto refusal = client.refusal();
    return refusal && refusal->problem.starts_with(problem);
  });
}

}  // namespace

TEST_CASE("a worker whose clock is behind that of its former process is taken in") {
  Config config = test::store_config(2);
  config.kvstore.replicas = 1;
  config.kvstore.lost_after = std::chrono::seconds(5);  // threads may stand still for long
  const Servers servers(config);
  test::StoreWorker other(config, "w2");
  REQUIRE(other.joined());
  const std::uint64_t now = wall_clock_us();
  auto former = client_of(config, now + minute_us);
  REQUIRE(former->wait_joined(patience()));
  // A living name stays with its process.
  auto next = client_of(config, now);
  CHECK(is_refused(*next, "another process takes part as worker 'w1'"));
  CHECK(next->incarnation() == now);
  former.reset();
  REQUIRE(next->wait_joined(patience()));
  CHECK(next->incarnation() > now + minute_us);
  CHECK(init(*next));
  CHECK(next->members().size() == 2);
}

TEST_CASE("a server whose clock is behind that of its former process is filled") {
  constexpr std::chrono::hours hour(1);
  Config config = test::store_config(2);
  config.kvstore.replicas = 1;
  Servers servers(config);
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  REQUIRE(worker.init(key, {0, 0}));
  std::uint64_t step = 0;
  for (const std::size_t ends : {0, 1}) {
    const auto starts_again = [&] {
      const std::uint64_t before = worker.epoch().servers[ends].id.incarnation;
      servers.start(ends);
      CHECK(test::eventually([&] {
        const kvstore::ServerEntry entry = worker.epoch().servers[ends];
        return entry.id.incarnation > before && entry.state == kvstore::ServerState::up;
      }));
      CHECK(worker.push(key, step++, {1, 2}, 1));
    };
    {
      test::move_wall_clock(hour);
      const OnExit back([&] { test::move_wall_clock(-hour); });
      starts_again();
    }
    starts_again();
  }
  CHECK(worker.pull(key, step) == std::vector<float>{-4, -8});
}

TEST_CASE("a name is no longer refused once its former process has been silent") {
  Config config = test::store_config(1);
  config.kvstore.min_workers = 2;  // so that nobody is taken in
  const Servers servers(config);
  auto former = client_of(config, wall_clock_us());
  auto next = client_of(config, wall_clock_us());
  // The one whose beat comes second.
  REQUIRE(test::eventually([&] { return former->refusal() || next->refusal(); }));
  if (former->refusal()) std::swap(former, next);
  CHECK(next->refusal()->problem == "another process takes part as worker 'w1'");
  former.reset();
  CHECK(test::eventually([&] { return !next->refusal(); }));
}

TEST_CASE("a worker that comes to a run whose values are lost is told so, and what to do") {
  const Config config = test::store_config(2);
  Servers servers(config);
  auto former = client_of(config, wall_clock_us());
  REQUIRE(former->wait_joined(patience()));
  REQUIRE(init(*former));
  servers.start(0);
  CHECK_THROWS_AS(former->wait_end(patience()), std::runtime_error);
  former.reset();
  auto next = client_of(config, wall_clock_us());
  CHECK(
      is_refused(*next, "the run cannot continue: server 's1' was started again, and its values"));
  servers.all[1].reset();
  servers.start(0);
  servers.start(1);
  CHECK(next->wait_joined(patience()));
}

}  // namespace dpwa
