#include "dpwa/rules/pull_round.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "dpwa/rules/step_report.h"

using namespace std::chrono_literals;
using dpwa::Backoff;
using dpwa::FlowControl;
using dpwa::Outcome;
using dpwa::PeerFailure;
using dpwa::PeerTable;
using dpwa::Progress;
using dpwa::PullRound;
using dpwa::Random;
using dpwa::SeenBlocks;
using dpwa::TimePoint;

namespace {

const TimePoint start{};

struct Fixture {
  Random random{1};
  PeerTable table{{"w1", "w2", "w3", "w4", "w5", "w6"}, FlowControl{}, Backoff{100ms, 5s, 0}};
  PullRound round;
  Fixture() { round.begin(start, 500ms); }

  Outcome outcome_of(const std::vector<PeerFailure>& failures) {
    table = PeerTable({"w1", "w2", "w3", "w4", "w5", "w6"}, FlowControl{}, Backoff{});
    round.begin(start, 500ms);
    for (const PeerFailure failure : failures) {
      REQUIRE(round.next_peer(table, start, random));
      round.failed(table, failure, start, random);
    }
    return round.outcome();
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a round is over once a peer has answered") {
  const auto peer = round.next_peer(table, start, random);
  REQUIRE(peer);
  CHECK(round.current() == peer);
  round.succeeded(table, Progress{}, start);
  CHECK(round.outcome() == Outcome::mixed);
  CHECK_FALSE(round.next_peer(table, start + 1ms, random));
  CHECK(round.current() == peer);  // who answered
  CHECK(table.at(*peer).pulls_ok == 1);
}

TEST_CASE_FIXTURE(Fixture, "after a failure the round goes on with a peer not yet asked") {
  std::set<dpwa::PeerId> asked;
  while (const auto peer = round.next_peer(table, start, random)) {
    CHECK(asked.insert(*peer).second);
    round.failed(table, PeerFailure::unreachable, start, random);
    CHECK_FALSE(round.current());
    CHECK(table.at(*peer).pulls_failed == 1);
  }
  CHECK(asked.size() == table.size());
  CHECK(round.outcome() == Outcome::unreachable);
}

TEST_CASE_FIXTURE(Fixture, "a peer is asked once a round even when its back-off has ended") {
  const auto peer = round.next_peer(table, start, random);
  round.failed(table, PeerFailure::busy, start, random);
  table.returned(*peer, 1);
  CHECK(table.at(*peer).retry_at <= start);
  for (std::size_t i = 1; i < table.size(); ++i) {
    CHECK(round.next_peer(table, start + 400ms, random) != peer);
    round.failed(table, PeerFailure::busy, start + 400ms, random);
  }
  CHECK_FALSE(round.next_peer(table, start + 499ms, random));
}

TEST_CASE_FIXTURE(Fixture, "no peer is tried at the deadline or later") {
  CHECK(round.deadline() == start + 500ms);
  CHECK(round.next_peer(table, start + 500ms - 1ns, random));
  round.failed(table, PeerFailure::unreachable, start + 500ms, random);
  CHECK_FALSE(round.next_peer(table, start + 500ms, random));
  CHECK_FALSE(round.next_peer(table, start + 1h, random));
  CHECK(round.outcome() == Outcome::unreachable);
}

TEST_CASE_FIXTURE(Fixture, "a round in which no peer could be asked was skipped") {
  CHECK(round.outcome() == Outcome::skipped);
  for (dpwa::PeerId peer = 0; peer < table.size(); ++peer) {
    table.failed(peer, PeerFailure::busy, start, random);
  }
  CHECK_FALSE(round.next_peer(table, start, random));
  CHECK_FALSE(round.current());
  CHECK(round.outcome() == Outcome::skipped);
}

TEST_CASE_FIXTURE(Fixture, "where no peer answers a round without a try says what is wrong") {
  for (dpwa::PeerId peer = 0; peer < table.size(); ++peer) {
    CHECK_FALSE(table.nobody_answers());
    table.failed(peer, peer == 3 ? PeerFailure::timed_out : PeerFailure::unreachable, start,
                 random);
  }
  CHECK(table.nobody_answers());
  CHECK_FALSE(round.next_peer(table, start, random));
  CHECK_FALSE(round.current());
  CHECK(round.outcome() == Outcome::timed_out);
  for (dpwa::PeerId peer = 0; peer < table.size(); ++peer) table.set_out(peer, true);
  round.begin(start + 1h, 500ms);
  CHECK_FALSE(round.next_peer(table, start + 1h, random));
  CHECK(round.outcome() == Outcome::timed_out);  // though none of them is asked any more
  table.set_out(2, false);
  table.succeeded(2, Progress{});
  CHECK_FALSE(table.nobody_answers());
}

TEST_CASE_FIXTURE(Fixture, "peers that were gone before the first pull are unreachable") {
  for (dpwa::PeerId peer = 0; peer < table.size(); ++peer) table.set_out(peer, true);
  CHECK_FALSE(round.next_peer(table, start, random));
  CHECK(round.outcome() == Outcome::unreachable);
  for (dpwa::PeerId peer = 0; peer < table.size(); ++peer) table.succeeded(peer, Progress{});
  round.begin(start, 500ms);
  CHECK_FALSE(round.next_peer(table, start, random));
  CHECK(round.outcome() == Outcome::skipped);  // they have left in order
}

TEST_CASE_FIXTURE(Fixture, "a single failure names the outcome") {
  CHECK(outcome_of({PeerFailure::timed_out}) == Outcome::timed_out);
  CHECK(outcome_of({PeerFailure::rejected}) == Outcome::rejected);
  CHECK(outcome_of({PeerFailure::protocol}) == Outcome::rejected);
  CHECK(outcome_of({PeerFailure::unreachable}) == Outcome::unreachable);
  CHECK(outcome_of({PeerFailure::busy}) == Outcome::busy);
  CHECK(outcome_of({PeerFailure::not_ready}) == Outcome::not_ready);
  CHECK(outcome_of({PeerFailure::not_fresh}) == Outcome::skipped);
}

TEST_CASE_FIXTURE(Fixture, "the most telling of several failures is reported, in any order") {
  const std::vector<PeerFailure> ranked{PeerFailure::timed_out, PeerFailure::rejected,
                                        PeerFailure::unreachable, PeerFailure::busy,
                                        PeerFailure::not_ready};
  for (std::size_t high = 0; high < ranked.size(); ++high) {
    for (std::size_t low = high; low < ranked.size(); ++low) {
      const Outcome expected = outcome_of({ranked[high]});
      CHECK(outcome_of({ranked[high], ranked[low]}) == expected);
      CHECK(outcome_of({ranked[low], ranked[high]}) == expected);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "a new round forgets the one before") {
  const auto peer = round.next_peer(table, start, random);
  round.failed(table, PeerFailure::timed_out, start, random);
  table.returned(*peer, 1);
  round.begin(start + 1s, 200ms);
  CHECK(round.outcome() == Outcome::skipped);
  CHECK(round.deadline() == start + 1200ms);
  CHECK_FALSE(round.current());
  std::set<dpwa::PeerId> asked;
  while (const auto next = round.next_peer(table, start + 1s, random)) {
    asked.insert(*next);
    round.failed(table, PeerFailure::busy, start + 1s, random);
  }
  CHECK(asked.size() == table.size());
}

TEST_CASE("a version is known for the blocks taken from it and for no other") {
  SeenBlocks seen;
  CHECK(seen.known_version(7, 0) == 0);
  seen.took(7, 3, 1);
  CHECK(seen.known_version(7, 1) == 3);
  CHECK(seen.known_version(7, 0) == 0);
  seen.took(7, 3, 63);
  CHECK(seen.known_version(7, 1) == 3);
  CHECK(seen.known_version(7, 63) == 3);
}

TEST_CASE("a newer version forgets the blocks of the one before") {
  SeenBlocks seen;
  seen.took(7, 3, 1);
  seen.took(7, 4, 2);
  CHECK(seen.known_version(7, 1) == 0);
  CHECK(seen.known_version(7, 2) == 4);
}

TEST_CASE("a whole model counts for every block") {
  SeenBlocks seen;
  seen.took_all(7, 5);
  CHECK(seen.known_version(7, 0) == 5);
  CHECK(seen.known_version(7, 63) == 5);
}

TEST_CASE("versions of an earlier life of the peer mean nothing") {
  SeenBlocks seen;
  seen.took_all(7, 5);
  CHECK(seen.known_version(8, 0) == 0);
  seen.took(8, 5, 0);
  CHECK(seen.known_version(8, 1) == 0);
  CHECK(seen.known_version(7, 0) == 0);
}

TEST_CASE("a version already taken, or an older one of the same process, is a repetition") {
  SeenBlocks seen;
  CHECK_FALSE(seen.repeats(7, 3, 0));
  seen.took(7, 3, 1);
  CHECK(seen.repeats(7, 3, 1));
  CHECK_FALSE(seen.repeats(7, 3, 0));
  CHECK(seen.repeats(7, 2, 0));
  CHECK_FALSE(seen.repeats(7, 4, 1));
  CHECK_FALSE(seen.repeats(8, 1, 1));
  CHECK_FALSE(seen.repeats(6, 1, 1));  // its wall clock was set back
}
