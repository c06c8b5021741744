// What the rules guarantee by themselves: each of their invariants broken once.

#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "dpwa/rules/final_models.h"
#include "dpwa/rules/firewall.h"
#include "dpwa/rules/flow_control.h"
#include "dpwa/rules/membership.h"
#include "dpwa/rules/pair_ledger.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/pull_round.h"
#include "dpwa/rules/readers.h"
#include "dpwa/rules/sample.h"
#include "dpwa/rules/start_rule.h"
#include "test/dpwa/rules/membership_fixture.h"
#include "test/support/broken_invariant.h"

namespace dpwa {

template <>
struct InvariantTest<DistanceBound> {
  static void fill_window(DistanceBound& bound) {
    bound.samples_.resize(DistanceBound::window + 1);
  }
  static void set_back(DistanceBound& bound) { bound.count_ = 0; }
};

template <>
struct InvariantTest<Membership> {
  static void forget_running(Membership& table) { table.running_ = 0; }
  static void forget_unmet(Membership& table) { table.unmet_.clear(); }
  static void change(Membership& table, PeerId place) { table.note_change(place); }
  static void place(Membership& table, const std::string& name) { table.place_for(name, true); }
};

template <>
struct InvariantTest<PairLedger> {
  static void add(const PairLedger& ledger, double weight) {
    PairLedger::Account account;
    ledger.add(account, weight);
  }
};

template <>
struct InvariantTest<PeerTable> {
  static void score(PeerTable& table, PeerId peer, double score) {
    table.record(peer).score = score;
  }
  static void watch(PeerTable& table, std::uint32_t position) {
    table.watched_.push_back(position);
  }
  static void add_special(PeerTable& table, PeerId peer) { table.special_.insert(peer); }
};

namespace {

using namespace std::chrono_literals;
using test::breaks;
constexpr TimePoint now{10h};

}  // namespace

TEST_CASE("the rules of distances guard their windows") {
  CHECK(breaks("a median is of some values", [] { lower_median({}); }));
  CHECK(breaks("a median is of some times", [] { upper_median({}); }));
  DistanceBound bound(2, 4, 3);
  bound.observe(0, 1);
  InvariantTest<DistanceBound>::set_back(bound);
  CHECK(breaks("distances are numbered in ascending order", [&] { bound.observe(0, 1); }));
  InvariantTest<DistanceBound>::fill_window(bound);
  CHECK(breaks("the window has room for all samples", [&] { bound.get(); }));
  CHECK(breaks("the own model is one of those to choose from", [] { choose_final_models({}, 0); }));
  Firewall firewall({}, 3);
  CHECK(breaks("a distance is of a block of the model", [&] { firewall.judge(0, max_blocks, 1); }));
}

TEST_CASE("a member has one place of the table") {
  const std::vector dead{test::claim("a", 0, MemberStatus::dead)};
  CHECK(breaks("all nodes of the file begin alive", [&] { Membership({}, dead, {}); }));
  Membership table = test::table();
  CHECK(breaks("a member has one place", [&] { InvariantTest<Membership>::place(table, "b"); }));
}

TEST_CASE("a table of members counts those that run, and those that others told of") {
  Membership table = test::table();
  CHECK(breaks("a version of the table is one that it has had",
               [&] { table.changed_since(table.version() + 1); }));
  CHECK(breaks("a change is of a place of the table",
               [&] { InvariantTest<Membership>::change(table, 2); }));
  table.heard("a", 1, now);
  InvariantTest<Membership>::forget_running(table);
  CHECK(breaks("a member that ends running was counted", [&] { table.heard("a", 2, now); }));

  Membership other = test::table();
  MemberClaim stranger = test::claim("c", 1);
  stranger.port = 1;
  other.merge("a", 1, test::said_by("a", {stranger}), now);
  REQUIRE(other.find("c"));
  InvariantTest<Membership>::forget_unmet(other);
  CHECK(breaks("a member that others told of counts among those",
               [&] { other.reached("c", 1, now); }));
}

TEST_CASE("a ledger has shares, factors and bounded balances") {
  CHECK(breaks("accounts are of pulls with a factor", [] { PairLedger(0); }));
  CHECK(breaks("accounts are of pulls with a factor", [] { PairLedger(1.5); }));
  PairLedger ledger(0.5);
  CHECK(breaks("a blend is of a share of the model, by at most the factor",
               [&] { ledger.took(0, 1, 1.5); }));
  CHECK(breaks("a blend is of a share of the model, by at most the factor",
               [&] { ledger.took(0, 1, 1, std::numeric_limits<double>::quiet_NaN()); }));
  CHECK(breaks("a balance is within its bound", [&] {
    InvariantTest<PairLedger>::add(ledger, std::numeric_limits<double>::quiet_NaN());
  }));
}

TEST_CASE("values and places of peers are those that there are") {
  PerPeer<int> values;
  values[3] = 1;
  CHECK(breaks("a peer whose position is asked for has a value", [&] { values.position(2); }));
  CHECK(breaks("what has been seen is a block of the model", [] { SeenBlocks().took(1, 1, 64); }));
  CHECK(breaks("what has been seen is a block of the model",
               [] { SeenBlocks().known_version(0, 64); }));
}

TEST_CASE("a table of peers has scores within their bounds, and knows whom it watches") {
  FlowControl upside_down;
  upside_down.min = 2000;
  CHECK(breaks("the first score is within the bounds of scores",
               [&] { PeerTable({"a"}, upside_down, {}); }));
  const auto table = [] { return PeerTable({"a", "b", "c"}, {}, {}); };
  Random random(1);
  PeerTable scored = table();
  InvariantTest<PeerTable>::score(scored, 1, 5000);
  CHECK(breaks("a score is within the bounds of scores", [&] { scored.score(1, now); }));
  PeerTable watching = table();
  InvariantTest<PeerTable>::watch(watching, 0);
  CHECK(breaks("a watched peer has a record", [&] { watching.choose({}, now, random); }));
  PeerTable special = table();
  InvariantTest<PeerTable>::add_special(special, 7);
  const std::vector<PeerId> all{0, 1, 2};
  CHECK(breaks("those that are left out are ordinary peers",
               [&] { special.choose(all, now, random); }));
  for (const PeerId peer : {8, 9, 10}) InvariantTest<PeerTable>::add_special(special, peer);
  CHECK(breaks("those that are out or watched are peers", [&] { special.nobody_answers(); }));
}

TEST_CASE("a round of pulls has one answer, of the peer that is asked") {
  PeerTable table({"a"}, {}, {});
  Random random(1);
  PullRound round;
  round.begin(now, 1s);
  const auto succeeds = [&] { round.succeeded(table, {}, now); };
  const auto fails = [&] { round.failed(table, PeerFailure::busy, now, random); };
  CHECK(breaks("the peer that answers is the one that is asked", succeeds));
  CHECK(breaks("the peer that fails is the one that is asked", fails));
  REQUIRE(round.next_peer(table, now, random));
  succeeds();
  CHECK(breaks("the peer that answers is the one that is asked", succeeds));
  CHECK(breaks("the peer that fails is the one that is asked", fails));
}

TEST_CASE("replies that end have begun, and no more begin than there may be") {
  Readers readers(1);
  const Caller known = Caller::known("a", "10.0.0.1");
  CHECK(breaks("a reply that ends has begun", [&] { readers.end(known, 1s, true, now); }));
  readers.begin(known);
  CHECK(breaks("no more replies begin than there may be", [&] { readers.begin(known); }));
  Caller elsewhere = known;
  elsewhere.account = "b";
  CHECK(breaks("a reply that ends was counted when it began",
               [&] { readers.end(elsewhere, 1s, true, now); }));
  Readers stalled(2);
  stalled.begin(known);
  stalled.end(known, 1s, false, now);  // remembered, for it did not arrive whole
  CHECK(breaks("the replies of a caller are some of all",
               [&] { stalled.end(known, 1s, true, now); }));
}

TEST_CASE("draws are of some values, and a start has the own node") {
  Random random(1);
  CHECK(breaks("the highest draw is one of some", [&] { highest_draw(0, random); }));
  CHECK(breaks("draws at the highest are some of those that were drawn",
               [&] { draws_at_highest(500, 0, random); }));
  CHECK(breaks("the own node is one of those that start",
               [] { decide_start({}, 0, std::nullopt, 0s, {}); }));
}

}  // namespace dpwa
