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

TEST_CASE("a majority is more than half, or half with the first server that is not down") {
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

TEST_CASE("a member of another incarnation does not vote") {
  EpochEngine server({"s0", 1}, names, Duration(30));
  server.receive({"s1", 1}, EpochNews{first_epoch()}, TimePoint{});
  Epoch next = first_epoch();
  ++next.number;
  server.propose(next, TimePoint{});
  const auto asked = server.take();
  CHECK(asked.size() == 4);
  const auto ballot = std::get<Ballot>(asked.front().message).ballot;
  for (const char* name : {"s1", "s2", "w0", "w1"}) {
    server.receive({name, 2}, Promise{1, ballot, true, 0, {}}, TimePoint{});
  }
  CHECK(server.take().empty());
  server.receive({"s1", 1}, Promise{1, ballot, true, 0, {}}, TimePoint{});
  server.receive({"w1", 1}, Promise{1, ballot, true, 0, {}}, TimePoint{});
  CHECK(server.take().size() == 4);
}

}  // namespace
}  // namespace dpwa::kvstore
