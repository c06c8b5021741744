#include "dpwa/rules/peer_table.h"

#include <doctest/doctest.h>

#include <vector>

using namespace std::chrono_literals;
using dpwa::Backoff;
using dpwa::Duration;
using dpwa::FlowControl;
using dpwa::PeerFailure;
using dpwa::PeerId;
using dpwa::PeerTable;
using dpwa::Progress;
using dpwa::Random;
using dpwa::TimePoint;

namespace {

const TimePoint start{};
const std::vector<PeerFailure> faults{PeerFailure::timed_out, PeerFailure::unreachable,
                                      PeerFailure::protocol, PeerFailure::rejected};
const std::vector<PeerFailure> declines{PeerFailure::busy, PeerFailure::not_ready};

struct Fixture {
  Random random{1};
  PeerTable table{{"w1", "w2", "w3"}, FlowControl{}, Backoff{100ms, 5s, 0}};

  void fail(unsigned times, PeerFailure failure, TimePoint now = start) {
    for (unsigned i = 0; i < times; ++i) table.failed(0, failure, now, random);
  }
  Duration delay(TimePoint now = start) const { return table.at(0).retry_at - now; }
  bool waits(TimePoint now = start) const { return table.at(0).retry_at > now; }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "peers begin with the initial score and may be asked at once") {
  CHECK(table.size() == 3);
  CHECK(table.name(2) == "w3");
  CHECK(table.at(2).score == 1000);
  CHECK(table.at(2).incarnation == 0);
  CHECK_FALSE(waits());
}

TEST_CASE_FIXTURE(Fixture, "a fault takes score and is counted") {
  for (const PeerFailure failure : faults) {
    CAPTURE(static_cast<int>(failure));
    table = PeerTable({"w1"}, FlowControl{}, Backoff{});
    fail(1, failure);
    CHECK(table.at(0).score == 900);
    CHECK(table.at(0).failures == 1);
    CHECK(table.at(0).pulls_failed == 1);
    CHECK(table.at(0).last_failure == failure);
    CHECK(waits());
  }
}

TEST_CASE_FIXTURE(Fixture, "other peers are not touched by a failure") {
  fail(3, PeerFailure::timed_out);
  CHECK(table.at(1).score == 1000);
  CHECK(table.at(1).pulls_failed == 0);
  CHECK(table.at(1).retry_at <= start);
}

TEST_CASE_FIXTURE(Fixture, "faults in a row back off exponentially up to the longest delay") {
  for (const Duration expected :
       {Duration(100ms), Duration(200ms), Duration(400ms), Duration(800ms), Duration(1600ms),
        Duration(3200ms), Duration(5s), Duration(5s)}) {
    fail(1, PeerFailure::unreachable);
    CHECK(delay() == expected);
  }
}

TEST_CASE_FIXTURE(Fixture, "a rejection backs off by the longest delay at once") {
  fail(1, PeerFailure::rejected);
  CHECK(delay() == 5s);
}

TEST_CASE_FIXTURE(Fixture,
                  "busy and not ready cost no score and back off briefly, without growth") {
  for (const PeerFailure failure : declines) {
    for (int i = 0; i < 10; ++i) {
      fail(1, failure);
      CHECK(delay() == 50ms);
    }
  }
  CHECK(table.at(0).score == 1000);
  CHECK(table.at(0).failures == 0);
  CHECK(table.at(0).pulls_failed == 20);
}

TEST_CASE("every delay is jittered, the brief one as well") {
  for (const PeerFailure failure :
       {PeerFailure::unreachable, PeerFailure::rejected, PeerFailure::busy}) {
    Random random(1);
    PeerTable table({"w1", "w2"}, FlowControl{}, Backoff{100ms, 5s, 0.5});
    table.failed(0, failure, start, random);
    table.failed(1, failure, start, random);
    CHECK(table.at(0).retry_at != table.at(1).retry_at);
  }
}

TEST_CASE_FIXTURE(Fixture, "a success earns score, ends the back-off and keeps the progress") {
  fail(2, PeerFailure::timed_out);
  Progress progress;
  progress.version = 12;
  progress.clock = 11.5;
  table.succeeded(0, progress);
  CHECK(table.at(0).score == 810);
  CHECK(table.at(0).failures == 0);
  CHECK(table.at(0).pulls_ok == 1);
  CHECK(table.at(0).pulls_failed == 2);
  CHECK_FALSE(table.at(0).last_failure);
  CHECK(table.at(0).progress.version == 12);
  CHECK(table.at(0).progress.clock == 11.5);
  CHECK_FALSE(waits());
  fail(1, PeerFailure::timed_out);
  CHECK(delay() == 100ms);  // the row begins anew
}

TEST_CASE_FIXTURE(Fixture, "any answer after three faults or more restores the score") {
  fail(3, PeerFailure::timed_out);
  CHECK(table.at(0).score == 700);
  table.succeeded(0, Progress{});
  CHECK(table.at(0).score == 1000);
  fail(3, PeerFailure::timed_out);
  fail(1, PeerFailure::busy);
  CHECK(table.at(0).score == 1000);
  CHECK(table.at(0).failures == 0);
}

TEST_CASE_FIXTURE(Fixture, "time forgives faults, and a new fault counts from what it forgave") {
  fail(2, PeerFailure::timed_out);
  CHECK(table.score(0, start) == 800);
  CHECK(table.score(0, start + 5s) == 850);
  CHECK(table.score(0, start + 60s) == 1000);
  fail(1, PeerFailure::timed_out, start + 5s);
  CHECK(table.at(0).score == 750);
  CHECK(table.score(0, start + 5s) == 750);
}

TEST_CASE_FIXTURE(Fixture, "a restarted peer starts afresh, unless it has offended") {
  table.returned(0, 7);
  for (const PeerFailure failure : faults) {
    if (failure == PeerFailure::protocol) continue;
    fail(20, failure);
    table.returned(0, table.at(0).incarnation + 1);
    CHECK(table.at(0).score == 1000);
    CHECK(table.at(0).failures == 0);
    CHECK_FALSE(waits());
    CHECK(table.at(0).pulls_failed > 0);  // history is kept
  }
  CHECK(table.at(0).incarnation == 10);
}

TEST_CASE_FIXTURE(Fixture, "after an offence only something sound restores the score") {
  for (const PeerFailure offence : {PeerFailure::unusable, PeerFailure::protocol}) {
    fail(5, offence);
    fail(1, PeerFailure::busy);  // it answers, and has nothing
    fail(5, offence);
    table.returned(0, 7);
    table.returned(0, table.at(0).incarnation + 1);
    table.reached(0, table.at(0).incarnation, start);
    CHECK(waits() == (offence == PeerFailure::unusable));  // else bytes may have been damaged
    CHECK(table.at(0).score < 100);
    table.succeeded(0, {});
    CHECK_FALSE(waits());
    CHECK(table.at(0).score == 1000);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "what a peer answers of itself outweighs what callers in its name said") {
  table.introduced(0, 7);
  table.returned(0, ~std::uint64_t{0});
  table.introduced(0, 7);
  CHECK(table.at(0).incarnation == 7);
  fail(3, PeerFailure::unreachable);
  REQUIRE(waits());
  table.returned(0, 7);  // no call of an older incarnation any more
  CHECK_FALSE(waits());
  table.introduced(0, 8);
  CHECK(table.at(0).incarnation == 8);
}

TEST_CASE_FIXTURE(Fixture, "a restart forgets the progress of the last process") {
  Progress progress;
  progress.version = 12;
  table.succeeded(0, progress);
  table.returned(0, 7);  // heard from for the first time: no restart
  CHECK(table.at(0).progress.version == 12);
  table.returned(0, 7);
  CHECK(table.at(0).progress.version == 12);
  table.returned(0, 8);
  CHECK(table.at(0).progress.version == 0);
}

TEST_CASE_FIXTURE(Fixture, "a peer that calls again ends its back-off and keeps its score") {
  table.returned(0, 7);
  table.returned(1, 7);
  fail(2, PeerFailure::timed_out);
  for (const std::uint64_t incarnation : {7, 0}) {  // 0: not known to the caller
    table.failed(1, PeerFailure::unreachable, start, random);
    table.returned(1, incarnation);
    CHECK(table.at(1).retry_at <= start);
  }
  table.returned(0, 7);
  CHECK_FALSE(waits());
  CHECK(table.at(0).score == 800);
  CHECK(table.at(0).failures == 2);
  CHECK(table.at(0).incarnation == 7);
}

TEST_CASE_FIXTURE(Fixture, "a busy or not ready peer is left its brief delay although it calls") {
  table.returned(0, 7);
  for (const PeerFailure failure : declines) {
    fail(1, failure);
    table.returned(0, 7);
    CHECK(delay() == 50ms);
  }
}

TEST_CASE_FIXTURE(Fixture, "a peer that was down gets its score back by calling, once") {
  table.returned(0, 7);
  fail(5, PeerFailure::timed_out);
  table.returned(0, 7);
  CHECK(table.at(0).score == 1000);
  // It can call but is never in time: calling on must not win it favour.
  fail(5, PeerFailure::timed_out);
  CHECK(delay() == 5s);  // the row of failures goes on
  table.returned(0, 7);
  CHECK(table.at(0).score == 500);
  // Once it has answered, the next outage is forgiven again.
  table.succeeded(0, Progress{});
  fail(5, PeerFailure::timed_out);
  table.returned(0, 7);
  CHECK(table.at(0).score == 1000);
}

TEST_CASE_FIXTURE(Fixture, "another lineage backs off ever longer, and takes no score") {
  for (const Duration expected :
       {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    fail(1, PeerFailure::other_lineage);
    CHECK(delay() == expected);
  }
  CHECK(table.at(0).score == 1000);
  CHECK(table.at(0).failures == 0);
  CHECK(table.at(0).pulls_failed == 9);
  CHECK_FALSE(table.nobody_answers());  // it does
}

TEST_CASE_FIXTURE(Fixture, "only weights of the own lineage end the row of other lineages") {
  table.returned(0, 7);
  fail(3, PeerFailure::other_lineage);
  // Neither a call, nor a word between, nor that its weights were taken in full.
  table.returned(0, 7);
  CHECK(waits());
  fail(1, PeerFailure::busy);
  table.succeeded(0, Progress{});
  fail(1, PeerFailure::other_lineage);
  CHECK(delay() == 400ms);
  // A restart is asked at once, and pays as before if nothing has changed.
  table.returned(0, 8);
  CHECK_FALSE(waits());
  fail(1, PeerFailure::other_lineage);
  CHECK(delay() == 800ms);
  table.shares_lineage(0);
  fail(1, PeerFailure::other_lineage);
  CHECK(delay() == 50ms);
}

TEST_CASE_FIXTURE(Fixture, "a rejected peer waits on although it calls") {
  table.returned(0, 7);
  fail(4, PeerFailure::rejected);
  table.returned(0, 7);
  table.returned(0, 0);
  CHECK(waits());
  CHECK(table.at(0).score == 600);
}

TEST_CASE_FIXTURE(Fixture, "a peer reached beside the pulls is as good as new, now and then") {
  table.introduced(0, 7);
  const auto fail_often = [&] {
    for (int i = 0; i < 12; ++i) table.failed(0, PeerFailure::timed_out, start, random);
    REQUIRE(table.score(0, start) < 100);
  };
  fail_often();
  table.reached(0, 7, start);
  CHECK(table.score(0, start) == FlowControl{}.initial);
  CHECK(table.at(0).retry_at <= start);
  fail_often();  // it can be reached, and gives nothing
  table.reached(0, 7, start + std::chrono::milliseconds(3999));
  CHECK(table.score(0, start) < 100);
  table.reached(0, 7, start + std::chrono::seconds(4));
  CHECK(table.score(0, start) == FlowControl{}.initial);
  fail_often();
  table.reached(0, 7, start + std::chrono::seconds(11));  // the next pause is twice as long
  CHECK(table.score(0, start) < 100);
  table.succeeded(0, {});
  fail_often();
  table.reached(0, 7, start + std::chrono::seconds(12));
  CHECK(table.score(0, start) == FlowControl{}.initial);
}

TEST_CASE_FIXTURE(Fixture, "a peer that refuses this node is not won over by reaching it") {
  table.failed(0, PeerFailure::rejected, start, random);
  const double score = table.score(0, start);
  table.reached(0, 7, start);
  table.failed(0, PeerFailure::rejected, start, random);
  table.reached(0, 7, start + std::chrono::minutes(5));
  CHECK(table.score(0, start) <= score);
}

TEST_CASE_FIXTURE(Fixture, "a call of an older incarnation is ignored") {
  table.returned(0, 7);
  fail(4, PeerFailure::unreachable);
  table.returned(0, 6);
  CHECK(waits());
  CHECK(table.at(0).score == 600);
  CHECK(table.at(0).incarnation == 7);
}

TEST_CASE_FIXTURE(Fixture,
                  "a peer that comes later starts afresh, in a new place or that of another") {
  fail(3, PeerFailure::unreachable);
  table.put(3, "w4");
  table.put(0, "w5");
  CHECK(table.size() == 4);
  CHECK(table.find("w4") == PeerId{3});
  CHECK(table.find("w5") == PeerId{0});
  CHECK_FALSE(table.find("w1"));
  CHECK(table.at(0).score == 1000);
  CHECK_FALSE(waits());
}
