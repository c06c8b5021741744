#include "dpwa/base/incarnation.h"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "dpwa/kvstore/member_watch.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/worker_engine.h"
#include "test/dpwa/kvstore/virtual_store.h"

// Processes that start again under an earlier clock than their former ones: in the first place with
// a lower number.

namespace dpwa::kvstore {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::StoreOptions;
using testing::VirtualStore;

const MemberId s1{"s1", 1};
const MemberId former{"w1", 900};
const MemberId next{"w1", 5};

TimePoint at(int ms) {
  return TimePoint{} + milliseconds(ms);
}

Beat joining(std::uint64_t epoch) {
  Beat beat;
  beat.epoch = epoch;
  beat.joins = true;
  return beat;
}

StoreOptions two_servers(std::uint64_t seed) {
  return {.replicas = true, .servers = 2, .workers = 2, .seed = seed};
}

// What the server tells w1 of a number, when it hears of `caller`.
std::optional<Answer> told(ServerEngine& server, const MemberId& caller, TimePoint now) {
  server.receive(caller, 0, joining(0), now);
  std::optional<Answer> answer;
  for (Outgoing& each : server.take()) {
    auto* content = std::get_if<Answer>(&each.message);
    if (content != nullptr && content->step != 0) answer = std::move(*content);
  }
  return answer;
}

}  // namespace

TEST_CASE("the number after a known one is above it, another for each process, and bounded") {
  CHECK(incarnation_after(900, 5).value_or(0) > 900);
  CHECK(incarnation_after(900, 5) != incarnation_after(900, 6));
  const auto most = incarnation_after(most_incarnation - (std::uint64_t{2} << 32), ~0ULL);
  CHECK(most.value_or(~0ULL) <= most_incarnation);
  CHECK_FALSE(incarnation_after(most_incarnation, 5));
  CHECK_FALSE(incarnation_after(~0ULL, 5));
}

TEST_CASE("a former number is told once its process no longer answers, or no longer takes part") {
  WatchOptions options;
  options.silent_after = milliseconds(1000);
  MemberWatch watch(options, s1, at(0));
  CHECK_FALSE(watch.known_above(next, false, at(0)));
  watch.heard(former, joining(0), at(0));
  CHECK_FALSE(watch.known_above(former, false, at(5000)));
  CHECK_FALSE(watch.known_above({"w1", 901}, false, at(5000)));
  for (int ms = 0; ms < 3000; ms += 100) {
    watch.look(at(ms));
    watch.heard(former, joining(0), at(ms));
    CHECK_FALSE(watch.known_above(next, false, at(ms)));
  }
  CHECK_FALSE(watch.known_above(next, false, at(3800)));
  CHECK(watch.known_above(next, false, at(3900)) == 900);
  watch.heard(former, {}, at(3900));
  CHECK(watch.known_above(next, false, at(3900)) == 900);
  CHECK_FALSE(watch.known_above({"s1", 0}, true, at(3900)));
}

TEST_CASE("a number is above those of the epochs as well") {
  ServerEngineOptions options;
  options.watch.silent_after = milliseconds(1000);
  ServerEngine server(options, s1, {"s1"}, at(0));
  Epoch epoch{std::uint64_t{1} << 40, {{s1, ServerState::up}}, {{former, 0}}};
  server.receive(former, 0, EpochNews{epoch}, at(0));
  REQUIRE(server.epoch().number == epoch.number);
  CHECK_FALSE(told(server, next, at(10)));
  server.tick(at(600));
  server.tick(at(1200));
  const auto answer = told(server, next, at(1300));
  REQUIRE(answer);
  CHECK(answer->kind == AnswerKind::name_taken);
  CHECK(answer->step == 900);
  WorkerEngine worker({}, next, {"s1"});
  worker.join();
  worker.receive(s1, 0, *answer, at(1300));
  const auto events = worker.take_events();
  REQUIRE(events.size() == 1);
  const auto* number = std::get_if<WorkerEngine::Renumbered>(&events[0]);
  REQUIRE(number != nullptr);
  CHECK(number->incarnation > epoch.number);
  CHECK(worker.self() == MemberId{"w1", number->incarnation});
  // Told by another server, or once more.
  worker.receive(s1, 0, *answer, at(1400));
  CHECK(worker.take_events().empty());
}

TEST_CASE("the steps of a former process in a snapshot are those of an earlier number") {
  ServerEngineOptions options;
  options.snapshots = true;
  ServerEngine server(options, s1, {"s1"}, at(0));
  server.set_stock({{7, 3}}, true);
  ShardEngine::Captured captured{3, {Key(1), 0}, {DType::float32, {1}}, {}};
  captured.state.values = std::make_shared<Bytes>(4);
  captured.state.clocks["w1"] = {former, 40};
  std::vector<ShardEngine::Captured> all;
  all.push_back(std::move(captured));
  server.load({7, 3}, std::move(all));
  const auto answer = told(server, next, at(1));
  REQUIRE(answer);
  CHECK(answer->step == 900);
  CHECK_FALSE(told(server, former, at(2)));
}

TEST_CASE("an absurd number is a refusal, and no reason to take one") {
  WorkerEngine worker({}, next, {"s1"});
  worker.join();
  Answer answer;
  answer.kind = AnswerKind::name_taken;
  answer.step = ~std::uint64_t{0};
  worker.receive(s1, 0, answer, at(0));
  const auto events = worker.take_events();
  REQUIRE(events.size() == 1);
  CHECK(std::holds_alternative<WorkerEngine::Refused>(events[0]));
  CHECK(worker.self() == next);
  ServerEngine server({}, s1, {"s1"}, at(0));
  Epoch epoch{0, {{{"s1", ~std::uint64_t{0}}, ServerState::down}}, {}};
  server.receive(former, 0, EpochNews{epoch}, at(0));
  CHECK_FALSE(server.deposed());
}

TEST_CASE("a worker that starts again with a lower number is taken in") {
  for (const std::size_t servers : {1, 2}) {
    CAPTURE(servers);
    StoreOptions options = two_servers(servers);
    options.servers = servers;
    options.replicas = servers == 2;
    VirtualStore store(options);
    store.run(seconds(1));
    store.kill_worker(0);
    store.start_worker(0, 1000);
    store.run(seconds(3));
    CHECK(store.clock(0) > 50);
    for (const std::uint64_t lower : {500, 3}) {
      store.kill_worker(0);
      store.start_worker(0, lower);
      const std::uint64_t before = store.clock(1);
      store.run(seconds(4));
      CHECK(store.clock(0) > before + 50);
      CHECK(store.worker(0).self().incarnation > 1000);
    }
    store.quiesce(seconds(3));
    CHECK(store.problem() == "");
    CHECK(store.failures().empty());
  }
}

TEST_CASE("a server that starts again with a lower number is filled") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    VirtualStore store(two_servers(seed));
    store.run(seconds(1));
    const std::size_t server = seed % 2;
    store.kill_server(server);
    store.run(seconds(2));
    store.start_server(server, 1000);
    store.run(seconds(4));
    REQUIRE(store.server(server).epoch().servers[server].state == ServerState::up);
    store.kill_server(server);
    store.run(milliseconds(seed < 3 ? 20 : 2000));
    store.start_server(server, 500);
    store.run(seconds(6));
    const ServerEntry& entry = store.server(server).epoch().servers[server];
    CHECK(entry.state == ServerState::up);
    CHECK(entry.id.incarnation > 1000);
    const std::uint64_t before = store.clock(0);
    store.run(seconds(2));
    for (const std::size_t worker : {0, 1}) CHECK(store.clock(worker) > before + 50);
    store.quiesce(seconds(3));
    CHECK(store.problem() == "");
    CHECK(store.replicas_agree());
  }
}

TEST_CASE("a server that starts again with a lower number before the first epoch is heard of") {
  VirtualStore store(two_servers(3));
  for (const std::size_t worker : {0, 1}) store.kill_worker(worker);
  store.kill_server(0);
  store.start_server(0, 1000);
  store.run(seconds(2));
  store.kill_server(0);
  store.run(seconds(2));
  store.start_server(0, 500);
  store.run(seconds(2));
  for (const std::size_t worker : {0, 1}) store.start_worker(worker);
  store.run(seconds(3));
  for (const std::size_t worker : {0, 1}) CHECK(store.clock(worker) > 50);
}

TEST_CASE("servers that all start again with lower numbers tell the workers that the run is over") {
  VirtualStore store(two_servers(5));
  for (const std::size_t server : {0, 1}) {
    store.kill_server(server);
    store.start_server(server, 1000 + server);
  }
  store.run(seconds(3));
  REQUIRE(store.clock(0) > 50);
  for (const std::size_t server : {0, 1}) store.kill_server(server);
  for (const std::size_t server : {0, 1}) store.start_server(server, 500 + server);
  store.run(seconds(5));
  for (const std::size_t worker : {2, 3}) CHECK_FALSE(store.world().runs(worker));
}

}  // namespace dpwa::kvstore
