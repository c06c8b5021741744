#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "test/dpwa/kvstore/virtual_store.h"
#include "test/support/sanitized.h"

namespace dpwa::kvstore::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Slower steps: more of a history for the same work.
void slow_down(VirtualStore& store, std::size_t workers) {
  for (std::size_t worker = 0; worker < workers; ++worker) store.slow_down(worker, 5);
}

StoreOptions bad_network(StoreOptions options) {
  options.loss = 0.05;
  options.doubled = 0.1;
  options.overtaking = 0.1;
  return options;
}

struct Kind {
  const char* name;
  KvstoreType type;
  std::uint64_t staleness = 0;
};
const std::vector<Kind> kinds = {{"dist_sync", KvstoreType::dist_sync, 0},
                                 {"dist_async", KvstoreType::dist_async, 0},
                                 {"dist_ssp 0", KvstoreType::dist_ssp, 0},
                                 {"dist_ssp 1", KvstoreType::dist_ssp, 1},
                                 {"dist_ssp 4", KvstoreType::dist_ssp, 4}};

TEST_CASE("all workers reach the last step, and every push counts exactly once") {
  for (const Kind& kind : kinds) {
    for (const bool replicas : {false, true}) {
      CAPTURE(kind.name);
      CAPTURE(replicas);
      VirtualStore store({.type = kind.type,
                          .staleness = kind.staleness,
                          .replicas = replicas,
                          .servers = 2,
                          .steps = 60});
      store.run(seconds(4));
      CHECK(store.problem() == "");
      for (std::size_t worker = 0; worker < 3; ++worker) {
        CHECK(store.clock(worker) == 60);
        CHECK(store.times_left_out(worker) == 0);
      }
      if (replicas) CHECK(store.replicas_agree());
    }
  }
}

TEST_CASE("every push counts exactly once when messages are lost, doubled and overtaken") {
  for (const Kind& kind : kinds) {
    for (std::uint64_t seed = 1; seed <= (test::sanitized ? 2 : 12); ++seed) {
      CAPTURE(kind.name);
      CAPTURE(seed);
      StoreOptions options{.type = kind.type, .staleness = kind.staleness};
      options.replicas = seed % 2 == 0;
      options.servers = 1 + seed % 3;
      options.seed = seed;
      options.not_finite = seed % 4 == 0 ? 0.02 : 0;
      VirtualStore store(bad_network(options));
      store.run(seconds(8));
      store.quiesce(seconds(4));
      CHECK(store.problem() == "");
      for (std::size_t worker = 0; worker < 3; ++worker) CHECK(store.clock(worker) > 10);
      if (options.replicas) CHECK(store.replicas_agree());
    }
  }
}

TEST_CASE("workers that die, hang, freeze and join do not stop the others") {
  for (const Kind& kind : kinds) {
    for (std::uint64_t seed = 1; seed <= (test::sanitized ? 1 : 8); ++seed) {
      CAPTURE(kind.name);
      CAPTURE(seed);
      StoreOptions options{.type = kind.type, .staleness = kind.staleness, .workers = 4};
      options.replicas = seed % 2 == 0;
      options.servers = 2;
      options.seed = seed;
      VirtualStore store(seed % 3 == 0 ? options : bad_network(options));
      slow_down(store, 4);
      Random random(seed);
      store.run(seconds(2));
      for (int fault = 0; fault < 6; ++fault) {
        const std::size_t worker = 1 + random.below(3);
        const std::string name = "w" + std::to_string(worker);
        const auto what = random.below(3);
        if (what == 0) store.kill_worker(worker);
        if (what == 1) store.hang(worker, true);
        if (what == 2) store.freeze(name);
        store.run(milliseconds(random.below(6000)));
        const std::uint64_t before = store.clock(0);
        // A step is several messages one after another, and one that is lost takes 0.3 s.
        store.run(seconds(2));
        if (kind.type == KvstoreType::dist_async) CHECK(store.clock(0) > before);
        if (what == 0) store.start_worker(worker);
        if (what == 1) store.hang(worker, false);
        if (what == 2) store.thaw(name);
        store.run(milliseconds(random.below(3000)));
      }
      store.run(seconds(5));
      std::vector<std::uint64_t> before;
      for (std::size_t worker = 0; worker < 4; ++worker) before.push_back(store.clock(worker));
      store.run(seconds(3));
      for (std::size_t worker = 0; worker < 4; ++worker) {
        CAPTURE(worker);
        CHECK(store.clock(worker) > before[worker]);
      }
      store.quiesce(seconds(4));
      CHECK(store.problem() == "");
    }
  }
}

TEST_CASE("a server that is killed at any moment loses no acknowledged update") {
  for (const Kind& kind : kinds) {
    for (std::uint64_t seed = 1; seed <= (test::sanitized ? 1 : 12); ++seed) {
      CAPTURE(kind.name);
      CAPTURE(seed);
      StoreOptions options{.type = kind.type, .staleness = kind.staleness, .replicas = true};
      options.servers = 2 + seed % 2;
      options.seed = seed;
      VirtualStore store(seed % 3 == 0 ? options : bad_network(options));
      slow_down(store, 3);
      Random random(seed);
      store.run(seconds(2));
      for (int fault = 0; fault < 4; ++fault) {
        CAPTURE(fault);
        const std::size_t server = random.below(options.servers);
        const std::string name = "s" + std::to_string(server);
        const bool freezes = random.bernoulli(0.4);
        if (freezes) {
          store.freeze(name);
        } else {
          store.kill_server(server);
        }
        store.run(milliseconds(random.below(4000)));
        if (freezes) {
          store.thaw(name);
        } else {
          store.start_server(server);
        }
        store.run(seconds(5));  // it is filled before the next one goes
        CHECK(store.problem() == "");
      }
      std::vector<std::uint64_t> before;
      for (std::size_t worker = 0; worker < 3; ++worker) before.push_back(store.clock(worker));
      store.run(seconds(3));
      for (std::size_t worker = 0; worker < 3; ++worker) {
        CAPTURE(worker);
        CHECK(store.clock(worker) > before[worker]);
      }
      store.quiesce(seconds(4));
      CHECK(store.problem() == "");
      CHECK(store.replicas_agree());
    }
  }
}

TEST_CASE("a straggler that is four times slower is never left out, also when it becomes one") {
  for (const std::uint64_t late : {false, true}) {
    VirtualStore store({.workers = 4});
    for (std::size_t worker = 0; worker < 4; ++worker) store.slow_down(worker, 20);
    if (!late) store.slow_down(3, 80);
    store.run(seconds(10));
    if (late) store.slow_down(3, 80);
    store.run(seconds(20));
    for (std::size_t worker = 0; worker < 4; ++worker) CHECK(store.times_left_out(worker) == 0);
    CHECK(store.clock(3) > 30);
  }
}

TEST_CASE("a worker that hangs is left out, and what it pushes later is refused") {
  VirtualStore store({.workers = 4});
  store.run(seconds(3));
  store.hang(2, true);
  store.run(milliseconds(1500));
  CHECK(store.times_left_out(2) == 1);
  const std::uint64_t before = store.clock(0);
  store.run(seconds(1));
  CHECK(store.clock(0) > before + 50);
  store.hang(2, false);
  store.run(seconds(1));
  CHECK(store.clock(2) + 1 >= store.clock(0));
  CHECK(store.problem() == "");
}

TEST_CASE("of a cluster that is split, the side with the majority goes on") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    VirtualStore store({.type = kind.type,
                        .staleness = kind.staleness,
                        .replicas = true,
                        .servers = 2,
                        .workers = 4});
    store.run(seconds(2));
    store.split({"s0", "w0"});
    store.run(seconds(3));
    const std::uint64_t small = store.clock(0);
    const std::uint64_t large = store.clock(1);
    store.run(seconds(3));
    CHECK(store.clock(0) == small);
    CHECK(store.clock(1) > large + 20);
    store.split({});
    store.run(seconds(3));
    CHECK(store.clock(0) > large);
    store.quiesce(seconds(3));
    CHECK(store.problem() == "");
    CHECK(store.replicas_agree());
  }
}

TEST_CASE("of a cluster that is split in equal halves, the side of the first server goes on") {
  VirtualStore store({.replicas = true, .servers = 2, .workers = 4});
  store.run(seconds(2));
  store.split({"s0", "w0", "w1"});
  store.run(seconds(4));
  const std::uint64_t first = store.clock(0);
  const std::uint64_t other = store.clock(2);
  store.run(seconds(2));
  CHECK(store.clock(0) > first + 20);
  CHECK(store.clock(2) == other);
  store.split({});
  store.run(seconds(3));
  CHECK(store.clock(2) > first);
  store.quiesce(seconds(3));
  CHECK(store.problem() == "");
}

TEST_CASE("a server and a worker that are killed together stop nobody") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    VirtualStore store({.replicas = true, .servers = 2, .workers = 4, .seed = seed});
    store.run(milliseconds(2000 + 7 * seed));
    store.kill_server(seed % 2);
    store.kill_worker(1);
    store.run(seconds(3));
    const std::uint64_t before = store.clock(0);
    store.start_server(seed % 2);
    store.start_worker(1);
    store.run(seconds(3));
    CHECK(store.clock(0) > before + 20);
    CHECK(store.clock(1) + 1 >= store.clock(0));
    store.quiesce(seconds(3));
    CHECK(store.problem() == "");
    CHECK(store.replicas_agree());
  }
}

TEST_CASE("without a replica, a server that is gone is named and nobody goes on with less") {
  VirtualStore store({.servers = 2});
  store.run(seconds(2));
  store.kill_server(1);
  store.run(seconds(3));
  CHECK(store.server(0).missing(store.time_of_server(0)) == std::vector<std::string>{"s1"});
  const std::uint64_t before = store.clock(0);
  store.run(seconds(3));
  CHECK(store.clock(0) <= before + 1);
}

}  // namespace
}  // namespace dpwa::kvstore::testing
