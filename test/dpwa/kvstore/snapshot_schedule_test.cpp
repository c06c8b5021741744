#include "dpwa/kvstore/snapshot_schedule.h"

#include <doctest/doctest.h>

namespace dpwa::kvstore {
namespace {

using std::chrono::seconds;

Epoch epoch_of_two() {
  Epoch epoch;
  epoch.number = epoch.run = 5;
  epoch.servers = {{{"s1", 5}, ServerState::up}, {{"s2", 4}, ServerState::up}};
  epoch.workers = {{{"w1", 1}, 0}};
  return epoch;
}

struct Schedule {
  bool due(const SnapshotSchedule::View& view, seconds now, const std::string& self = "s1") {
    schedule.look(epoch, view, start + now);
    return schedule.due(epoch, self, view, start + now);
  }
  TimePoint start{};
  Epoch epoch = epoch_of_two();
  SnapshotSchedule schedule{seconds(10), start};
};

TEST_CASE("a single server begins a snapshot after each period in which it made updates") {
  Schedule servers;
  servers.epoch.servers.pop_back();
  CHECK_FALSE(servers.due({0, 0, 0}, seconds(0)));
  CHECK_FALSE(servers.due({0, 0, 3}, seconds(9)));
  CHECK_FALSE(servers.due({0, 0, 3}, seconds(10), "s2"));
  CHECK(servers.due({0, 0, 3}, seconds(10)));
  CHECK_FALSE(servers.due({1, 1, 3}, seconds(11)));
  CHECK_FALSE(servers.due({1, 1, 3}, seconds(30)));  // no update since
  CHECK(servers.due({1, 1, 4}, seconds(30)));
}

TEST_CASE("updates between the begin of a snapshot and the next look are news") {
  Schedule servers;
  servers.epoch.servers.pop_back();
  CHECK_FALSE(servers.due({0, 0, 0}, seconds(0)));
  const SnapshotSchedule::View seen{0, 0, 3};
  CHECK(servers.due(seen, seconds(10)));
  servers.schedule.begins(1, servers.epoch, seen, servers.start + seconds(10));
  CHECK_FALSE(servers.due({1, 1, 5}, seconds(11)));
  servers.epoch.workers.clear();
  CHECK(servers.due({1, 1, 5}, seconds(12)));
}

TEST_CASE("several servers begin no snapshot without updates, also while workers take part") {
  Schedule servers;
  CHECK_FALSE(servers.due({0, 0, 0}, seconds(0)));
  CHECK(servers.due({0, 0, 3}, seconds(10)));
  CHECK_FALSE(servers.due({1, 1, 3}, seconds(11)));
  CHECK_FALSE(servers.due({1, 1, 3}, seconds(30)));
  CHECK(servers.due({1, 1, 4}, seconds(30)));
}

TEST_CASE("the last snapshot waits until the updates of all servers are known") {
  Schedule servers;
  const auto with = [](std::uint32_t number, std::uint64_t updates, bool current) {
    SnapshotSchedule::View view{number, number, updates, number, number};
    view.current = current;
    return view;
  };
  CHECK_FALSE(servers.due(with(0, 0, true), seconds(0)));
  CHECK(servers.due(with(0, 3, true), seconds(10)));
  CHECK_FALSE(servers.due(with(1, 3, true), seconds(11)));
  servers.epoch.workers.clear();
  CHECK_FALSE(servers.due(with(1, 3, false), seconds(12)));
  CHECK(servers.schedule.last_is_due(servers.epoch, with(1, 3, false)));
  SUBCASE("another server has updated meanwhile") {
    CHECK(servers.due(with(1, 4, true), seconds(13)));
    CHECK_FALSE(servers.due(with(2, 4, true), seconds(14)));
  }
  SUBCASE("none has") {
    CHECK_FALSE(servers.due(with(1, 3, true), seconds(13)));
    CHECK_FALSE(servers.schedule.last_is_due(servers.epoch, with(1, 3, true)));
  }
}

TEST_CASE("no snapshot begins while a server is missing, or the last one is being written") {
  Schedule servers;
  CHECK_FALSE(servers.due({0, 0, 0}, seconds(0)));
  servers.epoch.servers[1].state = ServerState::filling;
  CHECK_FALSE(servers.due({0, 0, 9}, seconds(20)));
  servers.epoch.servers[1].state = ServerState::up;
  CHECK(servers.due({0, 0, 9}, seconds(20)));
  CHECK_FALSE(servers.due({1, 0, 9}, seconds(20)));
  CHECK_FALSE(servers.due({1, 0, 19}, seconds(60)));
  SUBCASE("a server was replaced since: it will never be whole") {
    servers.epoch.servers[1].id.incarnation = 6;
    CHECK(servers.due({1, 0, 19}, seconds(60)));
  }
  SUBCASE("it has taken ten periods") {
    CHECK(servers.due({1, 0, 19}, seconds(120)));
  }
  SUBCASE("it is over") {
    CHECK(servers.due({1, 1, 19}, seconds(60)));
  }
}

TEST_CASE("once all workers have gone a snapshot of the last steps begins at once") {
  Schedule servers;
  CHECK_FALSE(servers.due({0, 0, 0}, seconds(0)));
  servers.epoch.workers.clear();
  CHECK(servers.due({0, 0, 9}, seconds(1)));
  CHECK_FALSE(servers.due({1, 1, 9}, seconds(2)));
}

TEST_CASE("the last snapshot is due until the file of the last steps has its name") {
  Schedule servers;
  servers.epoch.servers.pop_back();
  const auto is_due = [&](const SnapshotSchedule::View& view) {
    servers.schedule.look(servers.epoch, view, servers.start);
    return servers.schedule.last_is_due(servers.epoch, view);
  };
  CHECK_FALSE(servers.schedule.last_is_due({}, {}));  // before the first epoch
  CHECK_FALSE(is_due({3, 3, 0, 3, 3}));
  CHECK_FALSE(is_due({4, 4, 7, 4, 4}));
  CHECK_FALSE(is_due({4, 4, 9, 4, 4}));  // a worker takes part
  servers.epoch.workers.clear();
  CHECK(is_due({4, 4, 9, 4, 4}));
  CHECK(is_due({5, 4, 9, 4, 4}));  // it is written
  CHECK(is_due({5, 5, 9, 5, 4}));  // all have their parts
  CHECK_FALSE(is_due({5, 5, 9, 5, 5}));
  SUBCASE("one that was given up is not waited for") {
    CHECK_FALSE(is_due({6, 6, 9, 5, 5}));
  }
  SUBCASE("nor the one that the servers have started from") {
    servers.epoch.from.number = 5;
    CHECK_FALSE(is_due({5, 5, 9, 5, 0}));
  }
}

TEST_CASE("servers that started from a snapshot begin the next after steps of their own") {
  Schedule servers;
  CHECK_FALSE(servers.due({12, 12, 0}, seconds(0)));
  CHECK_FALSE(servers.due({12, 12, 0}, seconds(20)));
  CHECK(servers.due({12, 12, 1}, seconds(20)));
}

TEST_CASE("updates that were made before the first look at a run are news") {
  Schedule servers;
  CHECK_FALSE(servers.due({12, 12, 3}, seconds(0)));
  CHECK(servers.due({12, 12, 3}, seconds(10)));
}

}  // namespace
}  // namespace dpwa::kvstore
