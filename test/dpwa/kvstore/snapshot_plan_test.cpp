#include "dpwa/kvstore/snapshot_plan.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/kvstore/optimizer.h"
#include "test/dpwa/kvstore/doubles.h"

namespace dpwa::kvstore {
namespace {

using std::chrono::seconds;
using testing::bytes_of;
using testing::doubles_of;

constexpr TimePoint start{};
const MemberId s1{"s1", 7};
const MemberId s2{"s2", 9};
const MemberId w1{"w1", 3};
const ValueSpec spec{DType::float64, {1}};

std::vector<std::string> names(std::size_t servers) {
  return servers == 1 ? std::vector<std::string>{"s1"} : std::vector<std::string>{"s1", "s2"};
}

// The first key from `from` on whose one slice is on s1.
SliceId slice_of_s1(std::size_t servers, std::int64_t from = 1) {
  while (cut_into_slices(Key(from), 1, static_cast<std::uint32_t>(servers)).front().server != 0)
    ++from;
  return {Key(from), 0};
}

// Server s1, whose other server and whose worker are the test.
struct Server {
  explicit Server(std::size_t servers = 1, KvstoreType type = KvstoreType::dist_async)
      : servers(servers), engine(options(type), s1, names(servers), start) {}

  static ServerEngineOptions options(KvstoreType type) {
    ServerEngineOptions options;
    options.shard = rules_of(type);
    options.snapshots = true;
    options.watch.silent_after = options.watch.hung_min = std::chrono::hours(1);
    return options;
  }
  std::vector<SnapshotPlan::Wish> tick(seconds at) {
    now = start + at;
    hear_other();
    engine.tick(now);
    auto wishes = plan.tick(now);
    engine.take();
    return wishes;
  }
  // What its beat says.
  void hear_other() {
    if (servers == 1) return;
    other.epoch = engine.epoch().number;
    engine.receive(s2, 0, other, now);
  }
  void install(Epoch epoch) {
    epoch.run = 5;
    epoch.servers = {{s1, ServerState::up}};
    if (servers > 1) epoch.servers.push_back({s2, other_state});
    engine.receive(servers > 1 ? s2 : w1, 0, EpochNews{epoch}, now);
    hear_other();
  }
  // Without files: the first epoch, with a worker and its values.
  void begin() {
    plan.listed({}, false);
    other.stock.listed = true;
    other.stock.loaded = SnapshotId{};
    tick(seconds(0));
    install({.number = 5, .servers = {}, .workers = {{w1, 0}}});
    slice = slice_of_s1(servers);
    engine.receive(w1, 1, Init{5, slice, spec, bytes_of({0})}, now);
    CHECK(tick(seconds(0)).empty());
  }
  void push() { push(engine.shard().snapshot()); }
  void push(std::uint32_t snapshot) {
    Push push;
    push.epoch = engine.epoch().number;
    push.slice = slice;
    push.step = steps++;
    const auto optimizer = encode(default_options(OptimizerKind::sgd));
    push.optimizer = {optimizer.begin(), optimizer.end()};
    push.values = bytes_of({1});
    push.snapshot = snapshot;
    engine.receive(w1, 1, std::move(push), now);
  }
  // The worker has no more pushes from before the last snapshot.
  void pass() { pass(w1); }
  void pass(const MemberId& worker) {
    Beat beat;
    beat.epoch = engine.epoch().number;
    beat.joins = true;
    beat.snapshot = engine.shard().snapshot();
    engine.receive(worker, 0, beat, now);
  }
  // Of the snapshot that begins at this time; its part.
  SnapshotPlan::Write write(seconds at) {
    push();
    CHECK(tick(at).empty());
    pass();
    const auto wishes = tick(at);
    REQUIRE(wishes.size() == 1);
    return std::get<SnapshotPlan::Write>(wishes[0]);
  }

  const std::size_t servers;
  TimePoint now = start;
  ServerState other_state = ServerState::up;
  Beat other;  // of s2
  SliceId slice{Key(1), 0};
  std::uint64_t steps = 0;
  ServerEngine engine;
  SnapshotPlan plan{engine, seconds(10), 2, start};
};

TEST_CASE("a server without files begins empty, once it knows that it has none") {
  Server server;
  CHECK(server.tick(seconds(0)).empty());
  CHECK_FALSE(server.engine.loaded());
  server.plan.listed({}, false);
  CHECK(server.tick(seconds(1)).empty());
  CHECK(server.engine.loaded());
  CHECK_FALSE(server.plan.refusal());
  CHECK(server.plan.status(server.now).started_from == 0);
}

TEST_CASE("a server reads the newest snapshot once, and starts with it") {
  Server server;
  server.plan.listed({{4, 1}, {4, 2}}, true);
  const auto wishes = server.tick(seconds(0));
  REQUIRE(wishes.size() == 1);
  const SnapshotId id = std::get<SnapshotPlan::Load>(wishes[0]).id;
  CHECK(id == SnapshotId{4, 2});
  CHECK(server.tick(seconds(1)).empty());
  CHECK(server.plan.retention().common == std::set<SnapshotId>{{4, 1}, {4, 2}});
  server.plan.loaded(id, {}, start - seconds(40));
  CHECK(server.engine.loaded());
  const SnapshotStatus status = server.plan.status(start + seconds(2));
  CHECK(status.number == 2);
  CHECK(status.started_from == 2);
  CHECK(status.age_s == 42);
}

TEST_CASE("a server that had snapshots of which none is left refuses to start") {
  Server server;
  server.plan.listed({}, true);
  CHECK(server.tick(seconds(0)).empty());
  REQUIRE(server.plan.refusal());
  CHECK(*server.plan.refusal() ==
        "no snapshot of the servers is at all of them (s1: none); accepted: the missing files, or "
        "empty folders to begin from the first step");
  CHECK(server.tick(seconds(1)).empty());
  CHECK_FALSE(server.engine.loaded());
}

TEST_CASE("a part is written once all slices are captured, and complete once all have theirs") {
  Server server;
  server.begin();
  server.push();
  CHECK(server.tick(seconds(9)).empty());
  CHECK(server.engine.shard().snapshot() == 0);
  CHECK(server.tick(seconds(10)).empty());
  CHECK(server.engine.shard().snapshot() == 1);
  CHECK(server.tick(seconds(11)).empty());  // the worker may have more pushes for it
  server.pass();
  auto wishes = server.tick(seconds(12));
  REQUIRE(wishes.size() == 1);
  const auto write = std::get<SnapshotPlan::Write>(wishes[0]);
  CHECK(write.id == SnapshotId{5, 1});
  REQUIRE(write.part.size() == 1);
  CHECK(write.part[0].slice == server.slice);
  CHECK(doubles_of(*write.part[0].state.values) ==
        doubles_of(server.engine.shard().view(server.slice)->values));
  CHECK(server.tick(seconds(13)).empty());  // once
  CHECK(server.engine.over_everywhere() == 0);
  server.plan.written(write.id, /*stored=*/true, start + seconds(14));
  CHECK(server.engine.stored_everywhere() == 1);
  wishes = server.tick(seconds(15));
  REQUIRE(wishes.size() == 1);
  const auto complete = std::get<SnapshotPlan::Complete>(wishes[0]);
  CHECK(complete.id == write.id);
  CHECK(server.plan.status(server.now).number == 0);
  CHECK(server.tick(seconds(16)).empty());
  server.plan.completed(complete);
  const SnapshotStatus status = server.plan.status(start + seconds(20));
  CHECK(status.number == 1);
  CHECK(status.age_s == 6);
  CHECK(status.started_from == 0);
}

TEST_CASE("no part is written while a worker may still have a key that belongs to it") {
  Server server;
  server.begin();
  server.push();
  CHECK(server.tick(seconds(60)).empty());
  REQUIRE(server.engine.shard().snapshot() == 1);
  server.push();  // a later step: the slice is captured
  CHECK(server.tick(seconds(61)).empty());
  const SliceId second = slice_of_s1(1, server.slice.key.number() + 1);
  server.engine.receive(w1, 2, Init{5, second, spec, bytes_of({4})}, server.now);
  CHECK(server.tick(seconds(62)).empty());
  server.pass();
  const auto wishes = server.tick(seconds(63));
  REQUIRE(wishes.size() == 1);
  CHECK(std::get<SnapshotPlan::Write>(wishes[0]).part.size() == 2);
}

TEST_CASE("a part that could not be written is counted, and the next snapshot is tried") {
  Server server;
  server.begin();
  const auto first = server.write(seconds(10));
  server.plan.written(first.id, /*stored=*/false, server.now);
  CHECK(server.tick(seconds(11)).empty());
  CHECK(server.plan.status(server.now).failing);
  CHECK(server.plan.status(server.now).failures == 1);
  const auto second = server.write(seconds(20));
  CHECK(second.id == SnapshotId{5, 2});
  server.plan.written(second.id, /*stored=*/true, server.now);
  CHECK_FALSE(server.plan.status(server.now).failing);
  CHECK(server.plan.status(server.now).failures == 1);
  CHECK(std::holds_alternative<SnapshotPlan::Complete>(server.tick(seconds(21)).at(0)));
}

TEST_CASE("a snapshot in whose first step a worker was lost is given up, with merged pushes") {
  for (const bool merged : {true, false}) {
    Server server(1, merged ? KvstoreType::dist_sync : KvstoreType::dist_async);
    server.begin();
    server.push();
    CHECK(server.tick(seconds(60)).empty());
    REQUIRE(server.engine.shard().snapshot() == 1);
    const MemberId w2{"w2", 4};
    server.install({.number = 6, .servers = {}, .workers = {{w1, 0}, {w2, 0}}});
    server.pass(w2);  // with the first push of that step
    server.install({.number = 7, .servers = {}, .workers = {{w1, 0}}});
    server.pass();
    CHECK(server.tick(seconds(61)).size() == (merged ? 0 : 1));
    if (merged) CHECK(server.write(seconds(130)).id.number == 2);
  }
}

TEST_CASE(
    "what a snapshot would have had that was given up is in the next one, without an update") {
  Server server(1, KvstoreType::dist_sync);
  server.begin();
  server.push();
  CHECK(server.tick(seconds(60)).empty());
  server.install({.number = 6, .servers = {}, .workers = {}});  // all workers were killed
  CHECK(server.tick(seconds(61)).empty());
  CHECK(server.plan.last_is_due());
  const auto wishes = server.tick(seconds(62));
  REQUIRE(wishes.size() == 1);
  CHECK(std::get<SnapshotPlan::Write>(wishes[0]).id.number == 2);
}

TEST_CASE("a worker that makes up the numbers of snapshots begins none of them") {
  Server server(1, KvstoreType::dist_sync);
  server.begin();
  server.push(/*snapshot=*/0xffffffff);
  CHECK(server.engine.shard().snapshot() == 0);
  CHECK(server.engine.take_captured().empty());
  CHECK(server.write(seconds(10)).id.number == 1);
}

TEST_CASE("a snapshot is not complete before the other server has its part") {
  Server server(2);
  server.begin();
  const auto write = server.write(seconds(10));
  server.plan.written(write.id, /*stored=*/true, server.now);
  CHECK(server.tick(seconds(11)).empty());
  server.other.stored = server.other.over = 1;
  CHECK(std::holds_alternative<SnapshotPlan::Complete>(server.tick(seconds(12)).at(0)));
}

TEST_CASE("the part of a snapshot is dropped once a later one has begun") {
  Server server(2);
  server.begin();
  server.push();
  CHECK(server.tick(seconds(10)).empty());
  server.other.snapshot = 2;  // the other server has begun another
  CHECK(server.tick(seconds(11)).empty());
  server.pass();
  const auto wishes = server.tick(seconds(12));
  REQUIRE(wishes.size() == 1);
  CHECK(std::get<SnapshotPlan::Write>(wishes[0]).id == SnapshotId{5, 2});
}

TEST_CASE("no part is written while a server is gone") {
  Server server(2);
  server.begin();
  server.push();
  CHECK(server.tick(seconds(10)).empty());
  server.other_state = ServerState::filling;
  server.install({.number = 6, .servers = {}, .workers = {{w1, 0}}});
  server.pass();
  CHECK(server.tick(seconds(11)).empty());
  server.other_state = ServerState::up;
  server.install({.number = 7, .servers = {}, .workers = {{w1, 0}}});
  server.pass();
  CHECK(std::holds_alternative<SnapshotPlan::Write>(server.tick(seconds(12)).at(0)));
}

TEST_CASE("once the workers have left, the last snapshot is due until it is complete") {
  Server server;
  server.begin();
  server.push();
  CHECK_FALSE(server.plan.last_is_due());
  CHECK(server.tick(seconds(1)).empty());
  server.install({.number = 6, .servers = {}, .workers = {}, .left = {"w1"}});
  CHECK(server.plan.last_is_due());
  CHECK(server.tick(seconds(2)).empty());  // it begins
  const auto write = std::get<SnapshotPlan::Write>(server.tick(seconds(2)).at(0));
  CHECK(server.plan.last_is_due());
  server.plan.written(write.id, /*stored=*/true, server.now);
  CHECK(server.plan.last_is_due());
  server.plan.completed(std::get<SnapshotPlan::Complete>(server.tick(seconds(3)).at(0)));
  CHECK_FALSE(server.plan.last_is_due());
}

TEST_CASE("a server that has been told to refuse wishes nothing more") {
  Server server;
  server.plan.refuse("snapshot s1.1.1.snapshot is of cluster 'b', not 'a'");
  CHECK(server.tick(seconds(0)).empty());
  CHECK(server.plan.refusal() == "snapshot s1.1.1.snapshot is of cluster 'b', not 'a'");
  CHECK_FALSE(server.plan.last_is_due());
}

}  // namespace
}  // namespace dpwa::kvstore
