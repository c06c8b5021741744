#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/kvstore/epoch_engine.h"
#include "test/dpwa/kvstore/virtual_store.h"

// Members that are started again while the others alone cannot decide, and servers that stood
// still.

namespace dpwa::kvstore {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::StoreOptions;
using testing::VirtualStore;

const std::vector<std::string> names = {"s0", "s1"};
const MemberId s0{"s0", 1};
const MemberId s1{"s1", 1};
const MemberId new_s0{"s0", 900};

Epoch epoch_of(std::vector<WorkerEntry> workers) {
  return {5, {{s0, ServerState::up}, {s1, ServerState::up}}, std::move(workers)};
}

StoreOptions two_servers(std::uint64_t seed) {
  return {.replicas = true, .servers = 2, .workers = 2, .seed = seed};
}

// Its workers train, and are gone.
void make_idle(VirtualStore& store) {
  store.run(seconds(2));
  for (const std::size_t worker : {0, 1}) store.kill_worker(worker);
  store.run(seconds(4));
  REQUIRE(store.server(0).epoch().workers.empty());
  REQUIRE(store.server(1).epoch().members() == 2);
}

TEST_CASE("without workers the new process of a server votes for the old one") {
  const Epoch epoch = epoch_of({});
  CHECK(is_majority(epoch, {s1, new_s0}));
  CHECK_FALSE(is_majority(epoch, {s1}));
  CHECK_FALSE(is_majority(epoch, {new_s0}));
  CHECK_FALSE(is_majority(epoch, {new_s0, {"s1", 900}}));
  CHECK_FALSE(is_majority(epoch, {s1, {"s0", 0}}));
  CHECK(is_majority(epoch, {s0}));

  Epoch four = epoch;
  four.servers.push_back({{"s2", 1}, ServerState::up});
  four.servers.push_back({{"s3", 1}, ServerState::up});
  CHECK_FALSE(is_majority(four, {s1, new_s0}));
  CHECK_FALSE(is_majority(four, {s1, new_s0, {"s3", 1}}));
  CHECK(is_majority(four, {s1, new_s0, {"s2", 900}, {"s3", 1}}));
}

TEST_CASE("new processes vote for old ones only where each member votes") {
  const Epoch epoch = epoch_of({{{"w0", 1}, 0}, {{"w1", 1}, 0}});
  CHECK_FALSE(is_majority(epoch, {s1, {"w0", 1}}));
  CHECK_FALSE(is_majority(epoch, {s1, {"w0", 1}, new_s0}));
  CHECK_FALSE(is_majority(epoch, {s1, {"w0", 1}, {"w1", 2}}));
  CHECK(is_majority(epoch, {s1, {"w0", 1}, {"w1", 2}, new_s0}));
  CHECK(is_majority(epoch, {s1, {"w0", 2}, {"w1", 2}, new_s0}));
  CHECK_FALSE(is_majority(epoch, {new_s0, {"w0", 1}, {"w1", 1}, {"s1", 2}}));
}

// Alone the first server may have decided epochs that nobody else knows of.
TEST_CASE("an epoch with the vote of a new process has a number above all of the old one") {
  EpochEngine server(s1, names, Duration(30));
  server.receive(s0, EpochNews{epoch_of({})}, TimePoint{});
  Epoch next = epoch_of({});
  next.number = 6;
  next.servers[0].state = ServerState::down;
  server.propose(next, TimePoint{});
  const auto ballot = std::get<Ballot>(server.take().at(0).message).ballot;
  server.receive(new_s0, Promise{5, ballot, true, 0, {}}, TimePoint{});
  server.receive(new_s0, Vote{5, ballot}, TimePoint{});
  CHECK(server.installed().number == 900);
  CHECK(server.installed().servers == next.servers);
}

TEST_CASE("the first of two servers that dies without workers is filled when it comes back") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    VirtualStore store(two_servers(seed));
    make_idle(store);
    store.kill_server(0);
    store.run(seconds(3));
    store.start_server(0);
    store.run(seconds(5));
    for (const std::size_t server : {0, 1}) {
      CHECK(store.server(server).epoch().servers[0] == ServerEntry{{"s0", 2}, ServerState::up});
      CHECK(store.server(server).epoch().servers[1] == ServerEntry{s1, ServerState::up});
    }
    store.start_worker(0);
    store.run(seconds(3));
    CHECK(store.clock(0) > 50);
    store.quiesce(seconds(3));
    CHECK(store.problem().empty());
    CHECK(store.replicas_agree());
    CHECK(store.failures().empty());
  }
}

TEST_CASE("workers that are all killed at once and started again go on") {
  for (std::size_t servers = 1; servers <= 2; ++servers) {
    for (std::size_t workers = 2; workers <= 5; ++workers) {
      CAPTURE(servers);
      CAPTURE(workers);
      StoreOptions options = two_servers(workers);
      options.servers = servers;
      options.replicas = servers == 2;
      options.workers = workers;
      VirtualStore store(options);
      store.run(seconds(2));
      for (std::size_t worker = 0; worker < workers; ++worker) store.kill_worker(worker);
      store.run(milliseconds(servers == 1 ? 300 : 4000));
      for (std::size_t worker = 0; worker < workers; ++worker) store.start_worker(worker);
      store.run(seconds(5));
      for (std::size_t worker = 0; worker < workers; ++worker) CHECK(store.clock(worker) > 200);
      store.quiesce(seconds(3));
      CHECK(store.problem() == "");
    }
  }
}

TEST_CASE("a server and half of the members that are killed go on once all are started again") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    VirtualStore store(two_servers(seed));
    store.run(milliseconds(2000 + 7 * seed));
    store.kill_server(0);
    store.kill_worker(0);
    store.run(seconds(4));
    const std::uint64_t before = store.clock(1);
    store.start_worker(0);
    store.run(seconds(3));
    CHECK(store.server(1).undecided(store.time_of_server(1)) == std::vector<std::string>{"s0"});
    CHECK(store.clock(1) <= before + 1);
    store.start_server(0);
    store.run(seconds(6));
    CHECK(store.clock(1) > before + 50);
    CHECK(store.server(0).epoch().servers[0] == ServerEntry{{"s0", 2}, ServerState::up});
    store.quiesce(seconds(3));
    CHECK(store.problem() == "");
    CHECK(store.replicas_agree());
  }
}

// The half that is killed had gone on alone: its updates were acknowledged, and are lost with it.
TEST_CASE("a half that went on alone and was killed is replaced once all are started again") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    VirtualStore store(two_servers(seed));
    store.run(seconds(2));
    store.split({"s0", "w0"});
    store.run(seconds(4));
    const std::uint64_t alone = store.server(0).epoch().number;
    CHECK(store.server(1).epoch().number < alone);
    const std::uint64_t before = store.clock(1);
    store.kill_server(0);
    store.kill_worker(0);
    store.split({});
    store.run(seconds(3));
    CHECK(store.clock(1) <= before + 1);
    store.start_server(0);
    store.start_worker(0);
    store.run(seconds(6));
    for (const std::size_t worker : {0, 1}) CHECK(store.clock(worker) > before + 50);
    CHECK(store.failures().empty());
    store.quiesce(seconds(3));
    CHECK(store.replicas_agree());
  }
}

TEST_CASE("servers that stood still leave out nobody when they go on") {
  for (std::size_t servers = 1; servers <= 2; ++servers) {
    CAPTURE(servers);
    StoreOptions options = two_servers(3);
    options.servers = servers;
    options.replicas = servers == 2;
    options.workers = 3;
    VirtualStore store(options);
    store.run(seconds(2));
    for (std::size_t server = 0; server < servers; ++server) {
      store.freeze("s" + std::to_string(server));
    }
    store.run(seconds(5));
    for (std::size_t server = 0; server < servers; ++server) {
      store.thaw("s" + std::to_string(server));
    }
    const std::uint64_t before = store.clock(0);
    store.run(seconds(3));
    for (std::size_t worker = 0; worker < 3; ++worker) {
      CHECK(store.times_left_out(worker) == 0);
      CHECK(store.clock(worker) > before + 50);
    }
    store.quiesce(seconds(3));
    CHECK(store.problem() == "");
  }
}

// The first server went on alone with a worker, and its values went with it: the others find out
// and never serve older ones.
TEST_CASE("a server whose epochs its worker knows does not begin again from the other server") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    for (const bool heals_first : {false, true}) {
      CAPTURE(seed);
      CAPTURE(heals_first);
      VirtualStore store(two_servers(seed));
      make_idle(store);
      store.split({"s0", "w0"});
      store.run(seconds(3));
      store.start_worker(0);
      store.run(seconds(3));
      REQUIRE(store.clock(0) > 50);
      const std::uint64_t alone = store.server(0).epoch().number;
      CHECK(store.server(1).epoch().number < alone);
      store.kill_server(0);
      if (heals_first) store.split({});
      store.run(milliseconds(50 * seed));
      store.start_server(0);
      store.run(milliseconds(50 * seed));
      store.split({});
      store.run(seconds(5));
      CHECK_FALSE(store.world().runs(2));  // w0
      CHECK(store.server(0).epoch().number <= alone);
    }
  }
}

TEST_CASE("a server that was left out again before it heard of its admission begins anew") {
  for (const std::uint64_t known : {899U, 900U}) {
    ServerEngineOptions options;
    options.shard = rules_of(KvstoreType::dist_sync, 0, true);
    ServerEngine engine(options, new_s0, names, TimePoint{});
    Epoch epoch = epoch_of({});
    epoch.servers[0] = {{"s0", known}, ServerState::down};
    engine.receive(s1, 0, EpochNews{epoch}, TimePoint{});
    REQUIRE(engine.epoch() == epoch);
    CHECK(engine.deposed() == (known == new_s0.incarnation));
  }
}

}  // namespace
}  // namespace dpwa::kvstore
