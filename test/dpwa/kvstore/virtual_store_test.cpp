#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "test/dpwa/kvstore/virtual_store.h"

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
  StoreType type;
  std::uint64_t staleness = 0;
};
const std::vector<Kind> kinds = {{"dist_sync", StoreType::dist_sync, 0},
                                 {"dist_async", StoreType::dist_async, 0},
                                 {"dist_ssp 0", StoreType::dist_ssp, 0},
                                 {"dist_ssp 1", StoreType::dist_ssp, 1},
                                 {"dist_ssp 4", StoreType::dist_ssp, 4}};

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
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
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
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
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
        store.run(seconds(1));
        if (kind.type == StoreType::dist_async) CHECK(store.clock(0) > before);
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
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
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

}  // namespace
}  // namespace dpwa::kvstore::testing
