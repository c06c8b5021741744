#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/kvstore/member_watch.h"
#include "test/dpwa/kvstore/virtual_store.h"

// Members that do not hear one another although all of them run, and members that seemed to be
// gone.

namespace dpwa::kvstore {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::StoreOptions;
using testing::VirtualStore;

StoreOptions options_of(std::size_t servers, std::size_t workers, std::uint64_t seed = 1) {
  return {.replicas = true, .servers = servers, .workers = workers, .seed = seed};
}

std::size_t servers_up(const VirtualStore& store, std::size_t server) {
  std::size_t up = 0;
  for (const ServerEntry& entry : store.server(server).epoch().servers)
    up += entry.state == ServerState::up ? 1 : 0;
  return up;
}

// The workers have gone on, but for those in `without`.
void go_on(VirtualStore& store, std::size_t workers, const std::vector<std::size_t>& without = {}) {
  std::vector<std::uint64_t> before;
  for (std::size_t worker = 0; worker < workers; ++worker) before.push_back(store.clock(worker));
  store.run(seconds(1));
  for (std::size_t worker = 0; worker < workers; ++worker) {
    CAPTURE(worker);
    if (std::ranges::count(without, worker) == 0) CHECK(store.clock(worker) > before[worker] + 10);
  }
}

void ends_well(VirtualStore& store, std::size_t servers, std::size_t workers) {
  store.run(seconds(4));
  go_on(store, workers);
  CHECK(servers_up(store, 0) == servers);
  store.quiesce(seconds(3));
  CHECK(store.problem() == "");
  CHECK(store.replicas_agree());
}

std::string name(char kind, std::size_t index) {
  return kind + std::to_string(index);
}

TEST_CASE("of two servers one of which does not hear the other, one is left out meanwhile") {
  for (const std::size_t servers : {2, 3}) {
    for (std::size_t from = 0; from < servers; ++from) {
      for (std::size_t to = 0; to < servers; ++to) {
        if (from == to) continue;
        CAPTURE(servers);
        CAPTURE(from);
        CAPTURE(to);
        VirtualStore store(options_of(servers, 2));
        store.run(seconds(2));
        store.cut(name('s', from), name('s', to));
        store.run(seconds(4));
        go_on(store, 2);
        store.cut(name('s', from), name('s', to), false);
        ends_well(store, servers, 2);
      }
    }
  }
}

TEST_CASE("a server that hears no other one is left out, the first one as well") {
  for (std::size_t server = 0; server < 3; ++server) {
    CAPTURE(server);
    VirtualStore store(options_of(3, 2));
    store.run(seconds(2));
    for (std::size_t other = 0; other < 3; ++other) {
      if (other != server) store.cut(name('s', other), name('s', server));
    }
    store.run(seconds(4));
    go_on(store, 2);
    CHECK(servers_up(store, (server + 1) % 3) == 2);
    for (std::size_t other = 0; other < 3; ++other) {
      if (other != server) store.cut(name('s', other), name('s', server), false);
    }
    ends_well(store, 3, 2);
  }
}

TEST_CASE("a worker that one server does not hear is left out, and comes back") {
  for (std::size_t server = 0; server < 2; ++server) {
    CAPTURE(server);
    VirtualStore store(options_of(2, 3));
    store.run(seconds(2));
    store.cut("w0", name('s', server));
    store.cut(name('s', server), "w0");
    store.run(seconds(4));
    go_on(store, 3, {0});
    CHECK(store.times_left_out(0) == 1);  // and is not taken in again and again
    store.cut("w0", name('s', server), false);
    store.cut(name('s', server), "w0", false);
    ends_well(store, 2, 3);
  }
}

TEST_CASE("a server that hears no worker is left out, and filled once it does") {
  for (std::size_t workers = 1; workers <= 3; ++workers) {
    for (std::size_t server = 0; server < 2; ++server) {
      CAPTURE(workers);
      CAPTURE(server);
      VirtualStore store(options_of(2, workers));
      store.run(seconds(2));
      for (std::size_t worker = 0; worker < workers; ++worker) {
        store.cut(name('w', worker), name('s', server));
        store.cut(name('s', server), name('w', worker));
      }
      store.run(seconds(5));
      go_on(store, workers);
      for (std::size_t worker = 0; worker < workers; ++worker) {
        store.cut(name('w', worker), name('s', server), false);
        store.cut(name('s', server), name('w', worker), false);
      }
      ends_well(store, 2, workers);
    }
  }
}

TEST_CASE("a server that comes back is filled only once the others reach it") {
  for (std::size_t server = 0; server < 2; ++server) {
    CAPTURE(server);
    const std::string back = name('s', server);
    const std::string other = name('s', 1 - server);
    VirtualStore store(options_of(2, 2));
    store.run(seconds(2));
    store.kill_server(server);
    store.cut(other, back);
    store.run(seconds(2));
    store.start_server(server);
    store.run(seconds(3));
    go_on(store, 2);
    CHECK(servers_up(store, 1 - server) == 1);
    store.cut(other, back, false);
    ends_well(store, 2, 2);
  }
}

// After a time in which it could have connected again.
TEST_CASE("a server that comes back is filled without the one worker that does not reach it") {
  VirtualStore store(options_of(2, 3));
  store.run(seconds(2));
  store.kill_server(1);
  store.run(seconds(2));
  store.cut("w0", "s1");
  store.start_server(1);
  store.run(seconds(2));
  CHECK(servers_up(store, 0) == 1);
  go_on(store, 3);
  store.run(seconds(3));
  CHECK(servers_up(store, 0) == 2);
  go_on(store, 3, {0});
  store.cut("w0", "s1", false);
  ends_well(store, 2, 3);
}

TEST_CASE("a run begins once all servers hear one another") {
  VirtualStore store(options_of(3, 2));
  store.cut("s1", "s2");
  store.run(seconds(4));
  CHECK(store.server(0).epoch().number == 0);
  store.cut("s1", "s2", false);
  ends_well(store, 3, 2);
}

// The first server has proposed to go on without the second. That is not right any more once the
// third has died, which has the only other copy of what the second has.
TEST_CASE("what was to follow is thought over until it is decided") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    VirtualStore store(options_of(3, 2, seed));
    store.run(seconds(2));
    for (const char* each : {"s1", "w0", "w1"}) store.freeze(each);
    store.run(seconds(4));
    store.kill_server(2);
    store.run(milliseconds(1000));
    for (const char* each : {"s1", "w0", "w1"}) store.thaw(each);
    store.run(seconds(3));
    go_on(store, 2);
    CHECK(store.server(1).self().incarnation == 1);
    store.start_server(2);
    ends_well(store, 3, 2);
  }
}

TEST_CASE("servers decide also where a round trip takes longer than the wait for it") {
  StoreOptions options = options_of(2, 2);
  options.latency_ms = 130;  // the first server waits for 150 ms
  VirtualStore store(options);
  store.run(seconds(10));
  REQUIRE(store.server(0).epoch().number > 0);
  CHECK(store.clock(0) > 3);
}

TEST_CASE("a process that seemed to have ended and is still heard has not ended") {
  const MemberId s1{"s1", 1};
  const MemberId s2{"s2", 1};
  WatchOptions options;
  options.replicas = true;
  const auto at = [](int ms) { return TimePoint{} + milliseconds(ms); };
  const Epoch current{7, {{s1, ServerState::up}, {s2, ServerState::up}}, {}};
  Beat beat;
  beat.epoch = 7;
  beat.hears = {s1};
  MemberWatch watch(options, s1, at(0));
  watch.installed(current, at(0));
  watch.heard(s2, beat, at(0));
  CHECK_FALSE(watch.successor(current, Beat{}, at(1)));
  watch.lost(s2, at(10));
  REQUIRE(watch.successor(current, Beat{}, at(11)));
  watch.heard(s2, beat, at(12));  // was sent before
  CHECK(watch.successor(current, Beat{}, at(13)));
  watch.heard(s2, beat, at(520));
  CHECK_FALSE(watch.successor(current, Beat{}, at(521)));
}

TEST_CASE("a run has a higher number than all snapshots, also if the clock was set back") {
  const MemberId s1{"s1", 50};
  const MemberId s2{"s2", 60};
  MemberWatch watch({}, s1, TimePoint{});
  Epoch none;
  none.servers = {{{"s1", 0}, ServerState::down}, {{"s2", 0}, ServerState::down}};
  Beat own;
  own.stock.listed = true;
  own.stock.held = {{900, 3}};
  own.stock.loaded = SnapshotId{900, 3};
  Beat other = own;
  other.stock.held = {{900, 3}, {1000, 1}};
  other.hears = {s1, {"w1", 1}};
  Beat joins;
  joins.joins = true;
  watch.heard(s2, other, TimePoint{});
  watch.heard({"w1", 1}, joins, TimePoint{});
  const auto next = watch.successor(none, own, TimePoint{} + milliseconds(1));
  REQUIRE(next);
  CHECK(next->number == 1001);
  CHECK(next->run == 1001);
}

}  // namespace
}  // namespace dpwa::kvstore
