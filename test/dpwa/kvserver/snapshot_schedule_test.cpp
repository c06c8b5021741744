#include "dpwa/kvserver/snapshot_schedule.h"

#include <doctest/doctest.h>

namespace dpwa::kvserver {
namespace {

using kvstore::Epoch;
using kvstore::ServerState;
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

TEST_CASE("the first server begins a snapshot after each period in which steps were made") {
  Schedule servers;
  CHECK_FALSE(servers.due({0, 0, 0}, seconds(0)));
  CHECK_FALSE(servers.due({0, 0, 3}, seconds(9)));
  CHECK_FALSE(servers.due({0, 0, 3}, seconds(10), "s2"));
  CHECK(servers.due({0, 0, 3}, seconds(10)));
  CHECK_FALSE(servers.due({1, 1, 3}, seconds(11)));
  CHECK_FALSE(servers.due({1, 1, 3}, seconds(30)));  // no step since
  CHECK(servers.due({1, 1, 4}, seconds(30)));
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

TEST_CASE("servers that started from a snapshot begin the next after steps of their own") {
  Schedule servers;
  CHECK_FALSE(servers.due({12, 12, 42}, seconds(0)));
  CHECK_FALSE(servers.due({12, 12, 42}, seconds(20)));
  CHECK(servers.due({12, 12, 43}, seconds(20)));
}

}  // namespace
}  // namespace dpwa::kvserver
