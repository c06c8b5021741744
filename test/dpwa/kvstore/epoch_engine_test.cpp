#include "dpwa/kvstore/epoch_engine.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/random.h"

namespace dpwa::kvstore {
namespace {

const std::vector<std::string> names = {"s0", "s1", "s2"};

Epoch first_epoch() {
  Epoch epoch{1, {}, {{{"w0", 1}, 0}, {{"w1", 1}, 0}}};
  for (const std::string& name : names) epoch.servers.push_back({{name, 1}, ServerState::up});
  return epoch;
}

TEST_CASE("a majority has more than half, half with the first server, or all servers") {
  Epoch epoch = first_epoch();
  epoch.servers[0].state = ServerState::down;
  const MemberId s1{"s1", 1};
  const MemberId s2{"s2", 1};
  const MemberId w0{"w0", 1};
  const MemberId w1{"w1", 1};
  CHECK(is_majority(epoch, {s1, s2, w0}));
  CHECK(is_majority(epoch, {s1, w0}));
  CHECK_FALSE(is_majority(epoch, {s2, w0}));
  CHECK_FALSE(is_majority(epoch, {w0, w1}));
  CHECK_FALSE(is_majority(epoch, {s1}));
  CHECK(is_majority(epoch, {s1, s2}));
  epoch.workers.push_back({{"w2", 1}, 0});
  epoch.workers.push_back({{"w3", 1}, 0});
  epoch.workers.push_back({{"w4", 1}, 0});
  CHECK(is_majority(epoch, {s1, s2}));
  CHECK_FALSE(is_majority(epoch, {s1, w0, w1}));
  CHECK_FALSE(is_majority(epoch, {w0, w1, {"w2", 1}, {"w3", 1}, {"w4", 1}}));
}

// A proposal that is made again and again names those who have not answered.
TEST_CASE("a member without whose vote nothing is decided is named after a time") {
  const Epoch epoch = first_epoch();
  EpochEngine server({"s1", 1}, names, Duration(30));
  server.receive({"s0", 1}, EpochNews{epoch}, TimePoint{});
  Epoch next = epoch;
  ++next.number;
  next.servers[0].state = ServerState::down;
  server.propose(next, TimePoint{});
  server.tick(TimePoint{} + Duration(30));
  CHECK(server.undecided(TimePoint{} + Duration(59), Duration(60)).empty());
  const std::uint64_t ballot = std::get<Ballot>(server.take().back().message).ballot;
  server.receive({"w0", 1}, Promise{1, ballot, true, 0, {}}, TimePoint{});
  server.tick(TimePoint{} + Duration(90));
  const std::vector<std::string> others = {"s0", "s2", "w1"};
  CHECK(server.undecided(TimePoint{} + Duration(90), Duration(60)) == others);
  server.receive({"s0", 1}, EpochNews{next}, TimePoint{});
  CHECK(server.undecided(TimePoint{} + Duration(120), Duration(60)).empty());
}

// It drops what is asked of it in an epoch that it does not know, and need not be asked anew.
TEST_CASE("a member that asks for an epoch gets what is under way in it as well") {
  const Epoch epoch = first_epoch();
  EpochEngine server({"s1", 1}, names, Duration(30));
  server.receive({"s0", 1}, EpochNews{epoch}, TimePoint{});
  Epoch next = epoch;
  ++next.number;
  server.propose(next, TimePoint{});
  const Ballot ballot = std::get<Ballot>(server.take().back().message);
  server.receive({"w0", 1}, AskEpoch{}, TimePoint{});
  auto sent = server.take();
  REQUIRE(sent.size() == 2);
  CHECK(std::get<EpochNews>(sent[0].message).epoch == epoch);
  CHECK(std::get<Ballot>(sent[1].message) == ballot);
  CHECK(sent[1].to == "w0");

  for (const std::string voter : {"s0", "s2", "w0"})
    server.receive({voter, 1}, Promise{1, ballot.ballot, true, 0, {}}, TimePoint{});
  server.take();
  server.receive({"w1", 1}, AskEpoch{}, TimePoint{});
  sent = server.take();
  REQUIRE(sent.size() == 2);
  CHECK(std::get<Proposal>(sent[1].message) == Proposal{1, ballot.ballot, next});
  server.receive({"w7", 1}, AskEpoch{}, TimePoint{});
  CHECK(server.take().size() == 1);
}

TEST_CASE("a ballot that leaves no room for later ones is ignored") {
  const Epoch epoch = first_epoch();
  EpochEngine server({"s1", 1}, names, Duration(30));
  server.receive({"s0", 1}, EpochNews{epoch}, TimePoint{});
  Epoch next = epoch;
  ++next.number;
  constexpr std::uint64_t most = ~std::uint64_t{0};
  server.receive({"s0", 1}, Ballot{1, most}, TimePoint{});
  server.receive({"s0", 1}, Proposal{1, most, next}, TimePoint{});
  CHECK(server.take().empty());
  server.propose(next, TimePoint{});
  const auto first = std::get<Ballot>(server.take().back().message).ballot;
  server.receive({"s0", 1}, Promise{1, most, false, 0, {}}, TimePoint{});
  server.tick(TimePoint{} + Duration(30));
  CHECK(std::get<Ballot>(server.take().back().message).ballot > first);
  server.receive({"s0", 1}, Ballot{1, 100 * first}, TimePoint{});
  CHECK(std::get<Promise>(server.take().back().message).granted);
}

TEST_CASE("the holders of a slice are its server and the next, the first of them that is up") {
  Epoch epoch = first_epoch();
  CHECK(holders_of(epoch, 2, true) == Holders{2, 0});
  CHECK(holders_of(epoch, 2, false) == Holders{2, std::nullopt});
  epoch.servers[2].state = ServerState::down;
  CHECK(holders_of(epoch, 2, true) == Holders{0, std::nullopt});
  CHECK(holders_of(epoch, 1, true) == Holders{1, std::nullopt});
  CHECK(holders_of(epoch, 2, false) == Holders{});
  epoch.servers[2].state = ServerState::filling;
  CHECK(holders_of(epoch, 2, true) == Holders{0, 2});
  CHECK(holders_of(epoch, 1, true) == Holders{1, 2});
  epoch.servers[0].state = ServerState::down;
  CHECK(holders_of(epoch, 2, true) == Holders{});
}

// Two servers that do not hear of each other propose different epochs again and again, while
// messages are lost, late and doubled: no two members ever install different ones of a number.
TEST_CASE("no two epochs of one number are installed, whoever proposes and whatever is lost") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    std::map<std::string, EpochEngine> members;
    for (const char* name : {"s0", "s1", "s2", "w0", "w1"}) {
      const auto made = members.try_emplace(name, MemberId{name, 1}, names, Duration(30));
      made.first->second.receive({"s0", 1}, EpochNews{first_epoch()}, TimePoint{});
    }
    struct Sent {
      std::string from;
      std::string to;
      EpochMessage message;
    };
    std::vector<Sent> network;
    std::map<std::uint64_t, std::set<std::uint64_t>> installed;  // first steps, by number
    TimePoint now{};
    for (int event = 0; event < 4000; ++event) {
      now += Duration(1);
      for (const std::size_t server : {0, 1, 2}) {
        EpochEngine& engine = members.at(names[server]);
        Epoch next = engine.installed();
        ++next.number;
        next.workers[0].first_step = next.number * 10 + server;
        if (random.bernoulli(0.02)) engine.propose(next, now);
        engine.tick(now);
      }
      for (auto& [name, engine] : members) {
        for (auto& each : engine.take()) {
          if (random.bernoulli(0.2)) continue;
          network.push_back({name, each.to, each.message});
          if (random.bernoulli(0.1)) network.push_back(network.back());
        }
        const Epoch& epoch = engine.installed();
        installed[epoch.number].insert(epoch.workers[0].first_step);
      }
      if (network.empty()) continue;
      const std::size_t at = random.below(network.size());
      const Sent sent = network[at];
      network.erase(network.begin() + static_cast<std::ptrdiff_t>(at));
      members.at(sent.to).receive({sent.from, 1}, sent.message, now);
    }
    CHECK(installed.size() > 5);
    for (const auto& [number, which] : installed) {
      CAPTURE(number);
      CHECK(which.size() == 1);
    }
  }
}

TEST_CASE("the next processes of members are no part of a majority") {
  EpochEngine server({"s0", 1}, names, Duration(30));
  server.receive({"s1", 1}, EpochNews{first_epoch()}, TimePoint{});
  Epoch next = first_epoch();
  ++next.number;
  server.propose(next, TimePoint{});
  const auto asked = server.take();
  CHECK(asked.size() == 4);
  const auto ballot = std::get<Ballot>(asked.front().message).ballot;
  const Promise promise{1, ballot, true, 0, {}};
  for (const char* name : {"s1", "w0"}) server.receive({name, 2}, promise, TimePoint{});
  server.receive({"s2", 1}, promise, TimePoint{});
  CHECK(server.take().empty());
  server.receive({"w1", 1}, promise, TimePoint{});
  CHECK(server.take().size() == 4);
}

TEST_CASE("a decision that needed the votes of next processes names those that are gone") {
  for (const bool whole : {false, true}) {
    CAPTURE(whole);
    EpochEngine server({"s1", 1}, names, Duration(30));
    server.receive({"s0", 1}, EpochNews{first_epoch()}, TimePoint{});
    Epoch next = first_epoch();
    ++next.number;
    server.propose(next, TimePoint{});
    const auto ballot = std::get<Ballot>(server.take().front().message).ballot;
    const std::vector<MemberId> others = {{"w0", 2}, {"s0", 2}, {"s2", whole ? 1u : 2u}, {"w1", 1}};
    for (const MemberId& each : others)
      server.receive(each, Promise{1, ballot, true, 0, {}}, TimePoint{});
    for (const MemberId& each : others) server.receive(each, Vote{1, ballot}, TimePoint{});
    CHECK(server.installed().number >= 2);
    const std::vector<std::string> gone = {"w0", "s0", "s2"};
    CHECK(server.take_replaced() == (whole ? std::vector<std::string>{} : gone));
    CHECK(server.take_replaced().empty());
  }
}

}  // namespace
}  // namespace dpwa::kvstore
