#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/collective/lateness.h"
#include "dpwa/collective/terms.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;
using View = Lateness::View;

constexpr Lateness::Options options{60s, 10s};

View waiting(const std::string& name) {
  return {.name = name, .lost = "", .answers = true, .waits = true};
}
View working(const std::string& name) {
  return {.name = name, .lost = "", .answers = true};
}
View silent(const std::string& name) {
  return {.name = name, .lost = ""};
}
View lost(const std::string& name) {
  return {.name = name, .lost = "is no longer running"};
}

}  // namespace

TEST_CASE("how long a wait may last is learned from the waits of the run") {
  UsualTime waits;
  CHECK(before_looking(waits) == 1s);
  for (int i = 0; i < 64; ++i) waits.add(i % 2 == 0 ? 4ms : 6ms);
  CHECK(before_looking(waits) == 250ms);
  for (int i = 0; i < 64; ++i) waits.add(i % 2 == 0 ? 100ms : 140ms);
  CHECK(before_looking(waits) > 250ms);
  CHECK(before_looking(waits) < 500ms);
  for (int i = 0; i < 64; ++i) waits.add(10s);
  CHECK(before_looking(waits) == 2s);
  for (int i = 0; i < 63; ++i) waits.add(std::chrono::milliseconds(30 + i % 3));
  CHECK(before_looking(waits) == 250ms);  // one long wait among many changes little
}

TEST_CASE("a rank that answers is named once after a while, and lost after a long one alone") {
  Lateness lateness(options);
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 9s).late.empty());
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 10s).late == std::vector<std::string>{"w2"});
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 11s).late.empty());
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 59s).lost.empty());
  const auto verdict = lateness.judge({working("w2"), waiting("w3")}, 60s);
  CHECK(verdict.lost == "w2");
  CHECK(verdict.why == "answers, but has not come for 60.0 s");
}

TEST_CASE("a rank that counts as lost is given up for that reason, and a silent one is not late") {
  Lateness lateness(options);
  CHECK(lateness.judge({silent("w2"), waiting("w3")}, 61s).lost.empty());
  CHECK(lateness.judge({silent("w2"), waiting("w3")}, 61s).late.empty());
  const auto verdict = lateness.judge({lost("w2"), waiting("w3")}, 1s);
  CHECK(verdict.lost == "w2");
  CHECK(verdict.why == "is no longer running");
}

TEST_CASE("a wait that ended leaves nothing for the next") {
  Lateness lateness(options);
  CHECK(lateness.judge({working("w2")}, 10s).late.size() == 1);
  lateness.reset();
  CHECK(lateness.judge({working("w2")}, 10s).late.size() == 1);
}

TEST_CASE("zero switches off the word and the loss of ranks that answer") {
  Lateness lateness({0s, 0s});
  const auto verdict = lateness.judge({working("w2")}, 10h);
  CHECK(verdict.late.empty());
  CHECK(verdict.lost.empty());
}

TEST_CASE("a short list of nodes is shown, a long one as a number, and both in their order") {
  Config config;
  for (const char* name : {"b", "a"}) {
    config.nodes.emplace_back();
    config.nodes.back().name = name;
  }
  const Settings two = file_terms(config, "dpwa");
  CHECK(two == Settings{{"nodes of the cluster file", "b, a"},
                        {"engine of backend collective", "dpwa"},
                        {"collective.on_lost_rank", "stop"}});
  for (int i = 0; i < 500; ++i) {
    config.nodes.emplace_back();
    config.nodes.back().name = "node" + std::to_string(i);
  }
  const Settings many = file_terms(config, "dpwa");
  CHECK(many.front().second.size() < 64);
  CHECK(many.front().second.starts_with("502 names"));
  std::swap(config.nodes[100], config.nodes[101]);
  CHECK(file_terms(config, "dpwa") != many);
}

namespace {

constexpr auto now = TimePoint(100s);

members::Peer heard(const std::string& name, std::uint64_t counter = 1) {
  members::Peer peer;
  peer.id = members::ProcessId{name, counter, counter};
  peer.first = peer.heard = now;
  return peer;
}

}  // namespace

TEST_CASE("a node that can never be in the first group is named, and others are waited for") {
  group::GroupNode::State state;
  state.self = {"a", 1, 1};
  state.at = now;
  state.peers["b"] = heard("b");
  CHECK(stranger_in(state, {}, true).empty());
  // All hear that in the group.
  state.peers["b"].differs = "--seed: 1 on 'a' and 2 on 'b'";
  CHECK(stranger_in(state, {}, true).empty());
  // But into a group that trains nobody comes with it.
  state.view = {.run = 1, .number = 3, .members = {{{"b", 1, 1}}}};
  CHECK(stranger_in(state, {}, true) == "'b' differs: --seed: 1 on 'a' and 2 on 'b'");
  // Unless others train in one that admits this node: then that one is the stranger.
  state.view = {.run = 1, .number = 3, .members = {{{"c", 1, 1}}}};
  state.peers["c"] = heard("c");
  CHECK(stranger_in(state, {}, true).empty());
  state.view = {};
  state.peers["b"].differs = "nodes of the cluster file: a, b on 'a' and b, a on 'b'";
  CHECK(stranger_in(state, {}, true) ==
        "'b' differs: nodes of the cluster file: a, b on 'a' and b, a on 'b'");
  // One that has not spoken yet may be one of ours.
  state.peers["c"] = {};
  CHECK(stranger_in(state, {}, false).empty());
  CHECK_FALSE(stranger_in(state, {}, true).empty());
  CHECK(stranger_in(state, {{"c", "gossip"}}, false) == "'c' runs backend gossip");
  // Another key, once it is no accident.
  state.peers["b"].differs.clear();
  state.peers["c"].barred = "has another cluster key than this process";
  state.peers["c"].bars = 1;
  CHECK(stranger_in(state, {}, false).empty());
  state.peers["c"].bars = 2;
  CHECK(stranger_in(state, {}, false) == "'c' has another cluster key than this process");
  // In a group that was formed already, the views decide.
  state.view = {.run = 1, .number = 1, .members = {{{"a", 1, 1}}, {{"b", 1, 1}}}};
  CHECK(stranger_in(state, {}, true).empty());
}

TEST_CASE("one that has left in order is named as that, though another one is lost too") {
  group::GroupNode::State state;
  state.self = {"a", 1, 1};
  state.at = now;
  for (const char* name : {"b", "c"}) state.peers[name] = heard(name);
  const GroupMembers members{1, false, {{0, {"a", 1, 1}}, {1, {"b", 1, 1}}, {2, {"c", 1, 1}}}};
  CHECK(gone_in(state, members).empty());
  state.peers["b"].lost = "is no longer running";
  CHECK(gone_in(state, members) == "'b' is no longer running");
  state.peers["c"].leaves = true;
  CHECK(gone_in(state, members) == "'c' has left");
  state.peers["c"] = heard("c", 2);  // another process
  CHECK(gone_in(state, members) == "'b' is no longer running");
}

TEST_CASE("those that keep a group from forming are named, with what is known of them") {
  group::GroupNode::State state;
  state.self = {"a", 1, 1};
  state.at = now;
  state.late_after = 1s;
  state.peers["b"] = heard("b");
  state.peers["c"] = heard("c");
  state.peers["c"].heard = now - 5s;
  state.peers["d"].refusals = 2;
  CHECK(missing_in(state) == "'c' (no answer), 'd' (not running)");
  state.peers["e"].barred = "has another cluster key than this process";
  CHECK(missing_in(state) ==
        "'c' (no answer), 'd' (not running), 'e' (has another cluster key than this process)");
  state.view = {.run = 1, .number = 2, .members = {{{"a", 1, 1}}, {{"c", 1, 1}}, {{"d", 1, 1}}}};
  CHECK(minority_in(state).empty());
  state.lacking = {{"c", "not reachable"}, {"d", "not running"}};
  CHECK(minority_in(state) ==
        "1 of 3 nodes of the last group are not a majority of it; missing: 'c' (not reachable), "
        "'d' (not running)");
}

}  // namespace dpwa::collective
