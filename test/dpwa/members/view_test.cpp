#include "dpwa/members/view.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "dpwa/members/next_view.h"
#include "dpwa/members/proposer.h"
#include "dpwa/members/view_engine.h"
#include "dpwa/members/vote.h"
#include "test/support/broken_invariant.h"

namespace dpwa::members {
namespace {

ProcessId process(std::size_t index) {
  return {"w" + std::to_string(index), 1, index};
}

View view_of(std::size_t members, unsigned servers, Quorum quorum) {
  View view{.run = 1, .number = 1, .quorum = quorum, .members = {}};
  for (std::size_t i = 0; i < members; ++i)
    view.members.push_back({process(i), false, (servers >> i & 1U) != 0, {}});
  return view;
}

std::set<ProcessId> chosen(std::size_t members, unsigned bits) {
  std::set<ProcessId> voters;
  for (std::size_t i = 0; i < members; ++i) {
    if ((bits >> i & 1U) != 0) voters.insert(process(i));
  }
  return voters;
}

// By both rules, for all views of up to seven members and any of them servers.
TEST_CASE("any two quorums of a view have a member in common") {
  std::size_t quorums = 0;
  for (std::size_t members = 1; members <= 7; ++members) {
    for (unsigned servers = 0; servers < 1U << members; ++servers) {
      for (const Quorum rule : {Quorum::majority, Quorum::with_servers}) {
        if (rule == Quorum::majority && servers != 0) continue;
        const View view = view_of(members, servers, rule);
        std::vector<unsigned> found;
        for (unsigned bits = 0; bits < 1U << members; ++bits) {
          if (is_quorum(view, chosen(members, bits))) found.push_back(bits);
        }
        bool all_meet = true;
        for (const unsigned one : found) {
          for (const unsigned other : found) all_meet = all_meet && (one & other) != 0;
        }
        CHECK(all_meet);
        CHECK(found.empty() == (rule == Quorum::with_servers && servers == 0));
        quorums += found.size();
      }
    }
  }
  CHECK(quorums > 1000);
}

TEST_CASE(
    "half of the members decide with the first of them, and one that is joining has no vote") {
  View view = view_of(4, 0, Quorum::majority);
  CHECK(is_quorum(view, {process(0), process(3)}));
  CHECK_FALSE(is_quorum(view, {process(1), process(3)}));
  CHECK(is_quorum(view, {process(1), process(2), process(3)}));
  view.members[3].joining = true;
  CHECK(is_quorum(view, {process(1), process(2)}));
  CHECK_FALSE(is_quorum(view, {process(0), process(3)}));
}

TEST_CASE("however many workers die, all servers decide") {
  const View view = view_of(5, 0b00011, Quorum::with_servers);
  CHECK(is_quorum(view, {process(0), process(1)}));
  CHECK_FALSE(is_quorum(view, {process(2), process(3), process(4)}));
  CHECK(is_quorum(view, {process(1), process(3), process(4)}));
}

TEST_CASE("progress: what was completed out of order") {
  Progress progress;
  CHECK(progress.add(2));
  CHECK(progress.through == 0);
  CHECK(progress.add(1));
  CHECK_FALSE(progress.add(2));
  CHECK(progress == Progress{2, {}});
  progress.add(5);
  Progress other{3, {6}};
  CHECK_FALSE(progress.covers(other));
  other.add(progress);
  CHECK(other == Progress{3, {5, 6}});
  CHECK(other.covers(progress));
  CHECK_FALSE(Progress{6, {9}}.covers({9, {}}));
  other.keep_common(progress);
  CHECK(other == Progress{2, {5}});
}

TEST_CASE("what cannot be a view is none") {
  View view = view_of(3, 0, Quorum::majority);
  CHECK(view.sound());
  view.members[0].joining = true;
  CHECK_FALSE(view.sound());
  view.members[0].joining = false;
  view.members[2].id.name = "w1";
  CHECK_FALSE(view.sound());
  view.members.clear();
  CHECK(view.sound());
  view.number = ~std::uint64_t{0};
  CHECK_FALSE(view.sound());
}

TEST_CASE("invariants of a vote and of operations fire") {
  Vote vote{
      .owner = process(0), .promised = {1, process(0)}, .accepted = {2, process(0)}, .value = {}};
  CHECK(test::breaks("an accepted ballot was promised",
                     [&] { vote.prepare({{}, {3, process(0)}}); }));
  CHECK(test::breaks("ballots are accepted in ascending order",
                     [&] { vote.accept({{}, {1, process(0)}, {}}); }));
  ViewEngine alone({.self = {"w0", 1, 1}, .names = {"w0"}});
  const TimePoint now = TimePoint{} + std::chrono::hours(1);
  alone.tick(now);
  REQUIRE(alone.standing() == ViewEngine::Standing::member);
  CHECK(alone.complete(1, 1));
  CHECK_FALSE(alone.complete(2, 2));
  CHECK(test::breaks("an operation is completed once", [&] { alone.complete(1, 1); }));
}

// What is known when these have promised, each for itself.
Promises promises_of(const std::vector<ProcessId>& voters) {
  Promises promises;
  for (const ProcessId& voter : voters) {
    Promise& promise = promises.of[voter];
    promise.voter = voter;
    promise.granted = promise.lives = true;
  }
  return promises;
}

TEST_CASE("a run begins with enough of the names, and with a server where some decide by it") {
  Facts facts;
  facts.names = {"w0", "w1", "w2"};
  facts.enough = 3;
  const Promises promises = promises_of({process(0), process(1), process(2)});
  facts.apply[process(0)] = facts.apply[process(1)] = {};
  CHECK_FALSE(next_view({}, promises, facts, 1));  // one was started anew, and has not applied yet
  facts.apply[process(2)] = {};
  REQUIRE(next_view({}, promises, facts, 1));
  CHECK(next_view({}, promises, facts, 1)->members.size() == 3);
  facts.of_new_run = Quorum::with_servers;
  CHECK_FALSE(next_view({}, promises, facts, 1));
  facts.apply[process(1)].serves = true;
  CHECK(next_view({}, promises, facts, 1));
}

TEST_CASE("the last server stays while a worker does") {
  const View view = view_of(3, 0b001, Quorum::with_servers);
  const Promises promises = promises_of({process(0), process(1), process(2)});
  Facts facts;
  facts.leaving = {process(0)};
  CHECK_FALSE(wants_change(view, facts));
  facts.leaving.insert(process(1));
  auto next = next_view(view, promises, facts, 1);
  REQUIRE(next);
  CHECK(next->voters() == std::vector{process(0), process(2)});
  facts.leaving.insert(process(2));
  next = next_view(view, promises, facts, 1);
  REQUIRE(next);
  CHECK(next->open());
}

TEST_CASE("those that leave last do not wait for one that has died") {
  const View view = view_of(3, 0, Quorum::majority);
  Facts facts;
  facts.leaving = {process(0), process(1)};
  facts.gone = {process(2)};
  const auto next = next_view(view, promises_of({process(0), process(1)}), facts, 1);
  REQUIRE(next);
  CHECK(next->open());
  // The votes of the dead alone do not end a run that one may live to continue.
  Promises dead = promises_of({process(0), process(1)});
  for (auto& [voter, promise] : dead.of) promise.lives = false;
  facts.leaving.clear();
  CHECK_FALSE(next_view(view, dead, facts, 1));
}

TEST_CASE("a ballot that leads to no view goes on until one is possible") {
  const View view = view_of(2, 0, Quorum::majority);
  const Base base{view.number, view.digest()};
  const TimePoint now = TimePoint{} + std::chrono::hours(1);
  Proposer proposer(std::chrono::milliseconds(100), 1);
  const Prepare question = proposer.begin(base, {"w0", 2, 7}, 0, now);
  Promise promise;  // of a dead one
  promise.ballot = question.ballot;
  promise.voter = process(0);
  promise.granted = true;
  proposer.note(promise);
  Facts facts;
  facts.gone = {process(1)};
  const auto choose = [&] { return proposer.choose(view, base, facts, now, [](const auto&) {}); };
  CHECK_FALSE(choose());
  CHECK(proposer.active());
  facts.closes = true;
  const auto proposal = choose();
  REQUIRE(proposal);
  CHECK(proposal->ballot == question.ballot);
  CHECK(proposal->value.open());
}

// It would replace theirs before they are done, again and again.
TEST_CASE("the ballot after one that led to no view leaves the others time for theirs") {
  const View view = view_of(3, 0b001, Quorum::with_servers);
  const Base base{view.number, view.digest()};
  for (const bool promised : {false, true}) {
    CAPTURE(promised);
    TimePoint now = TimePoint{} + std::chrono::hours(1);
    Proposer proposer(std::chrono::milliseconds(100), 1);
    const Prepare question = proposer.begin(base, process(1), 0, now);
    for (const ProcessId& voter : {process(0), process(1)}) {
      Promise promise;  // the server has ended, and its successor speaks for it
      promise.ballot = question.ballot;
      promise.voter = voter;
      promise.granted = promised;
      promise.lives = voter == process(1);
      proposer.note(promise);
    }
    now += std::chrono::milliseconds(200);
    CHECK_FALSE(proposer.choose(view, base, {}, now, [](const auto&) {}));
    REQUIRE(proposer.is_over(now));
    proposer.begin(base, process(1), 0, now);
    CHECK(proposer.is_over(now + std::chrono::milliseconds(500)) != promised);
  }
}

TEST_CASE("one that applied with other settings before the run began does not join it") {
  ViewEngine alone({.self = {"w0", 1, 1}, .names = {"w0"}, .settings = 7});
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  alone.receive({"w9", 1, 9}, Apply{.base = {}, .settings = 8}, now);
  for (int i = 0; i < 20; ++i) alone.tick(now += std::chrono::milliseconds(20));
  CHECK(alone.view().number == 1);
  CHECK(alone.view().member("w9") == nullptr);
}

TEST_CASE("a process that starts has a higher number than the former ones of its name") {
  Kept former;
  former.installed = view_of(2, 0, Quorum::majority);
  former.installed.members[0].id.counter = 5;  // raised while it ran
  former.votes = {{.owner = former.installed.members[0].id, .value = {}}};
  const ViewEngine engine({.self = {"w0", 2, 9}, .names = {"w0", "w1"}}, former);
  CHECK(engine.self().replaces(former.installed.members[0].id));
}

TEST_CASE("a state that was given in an older view does not count") {
  ViewEngine engine({.self = process(1), .names = {"w0", "w1"}});
  const TimePoint now = TimePoint{} + std::chrono::hours(1);
  View view = view_of(2, 0, Quorum::majority);
  view.members[1].joining = true;
  engine.receive(process(0), Installed{view}, now);
  view.number = 2;
  engine.receive(process(0), Installed{view}, now);
  CHECK_FALSE(engine.begin_at(1, 5));
  CHECK(engine.progress() == Progress{});
  CHECK(engine.begin_at(2, 6));
  CHECK(engine.progress() == Progress{6, {}});
}

TEST_CASE("a member that joins again before it knew that it was left out begins anew") {
  ViewEngine engine({.self = process(1), .names = {"w0", "w1"}});
  const TimePoint now = TimePoint{} + std::chrono::hours(1);
  View view = view_of(2, 0, Quorum::majority);
  engine.receive(process(0), Installed{view}, now);
  REQUIRE(engine.complete(1, 1));
  view.number = 3;
  view.members[1].joining = true;
  engine.receive(process(0), Installed{view}, now);
  REQUIRE(engine.standing() == ViewEngine::Standing::joining);
  CHECK(engine.progress() == Progress{});
}

}  // namespace
}  // namespace dpwa::members
