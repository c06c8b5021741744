#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "dpwa/rules/peer_table.h"

using namespace std::chrono_literals;
using dpwa::Backoff;
using dpwa::FlowControl;
using dpwa::PeerFailure;
using dpwa::PeerId;
using dpwa::PeerTable;
using dpwa::Random;
using dpwa::TimePoint;

namespace {

// How peers of any score are chosen beside each other is in peer_choice_law_test.cpp.
const TimePoint start{};

PeerTable make_table(std::size_t peers) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < peers; ++i)
    names.push_back(std::string("w").append(std::to_string(i)));
  return PeerTable(names, FlowControl{}, Backoff{});
}

std::vector<int> count_choices(const PeerTable& table, std::vector<PeerId> excluded, TimePoint now,
                               int draws) {
  Random random(11);
  std::vector<int> counts(table.size());
  for (int i = 0; i < draws; ++i) ++counts.at(table.choose(excluded, now, random).value());
  return counts;
}

double chi_square(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += std::pow(count - expected, 2) / expected;
  return sum;
}

}  // namespace

TEST_CASE("no peer is chosen when all are excluded, backing off, or there are none") {
  Random random(1);
  CHECK_FALSE(make_table(0).choose({}, start, random));
  PeerTable table = make_table(2);
  const std::vector<PeerId> all{0, 1};
  CHECK_FALSE(table.choose(all, start, random));
  table.failed(0, PeerFailure::unreachable, start, random);
  table.failed(1, PeerFailure::unreachable, start, random);
  CHECK_FALSE(table.choose({}, start, random));
  CHECK(table.choose({}, start + 1s, random));
}

TEST_CASE("a peer is avoided until its retry is due, to the tick") {
  Random random(1);
  PeerTable table = make_table(1);
  table.failed(0, PeerFailure::timed_out, start, random);
  const TimePoint due = table.at(0).retry_at;
  CHECK(due > start);
  CHECK_FALSE(table.choose({}, due - 1ns, random));
  CHECK(table.choose({}, due, random) == 0);
}

TEST_CASE("a peer that failed often is tried again beside sound ones after a while") {
  Random random(1);
  PeerTable table = make_table(8);
  for (int i = 0; i < 10; ++i) table.failed(0, PeerFailure::unreachable, start, random);
  CHECK(count_choices(table, {}, start + 10s, 10000)[0] == 0);
  const int later = count_choices(table, {}, start + 100s, 8000)[0];
  CHECK(std::abs(later - 1000) < 150);
}

TEST_CASE("a node that no peer answers tries all of them again soon, however long they failed") {
  PeerTable table = make_table(3);
  Random random(5);
  const TimePoint cut = start + 1h;
  const auto fail = [&](PeerFailure failure) {
    for (int i = 0; i < 10; ++i) {
      for (PeerId peer = 0; peer < 3; ++peer) table.failed(peer, failure, cut, random);
    }
    REQUIRE(table.at(0).retry_at > cut + 2s);
  };
  SUBCASE("unreachable or damaged: after a tenth of a second") {
    fail(PeerFailure::unreachable);
    CHECK_FALSE(table.choose({}, cut + 99ms, random));
    CHECK(table.choose({}, cut + 100ms, random));
  }
  SUBCASE("silent: after half a second") {
    fail(PeerFailure::timed_out);
    CHECK_FALSE(table.choose({}, cut + 499ms, random));
    CHECK(table.choose({}, cut + 500ms, random));
  }
  SUBCASE("not when they refuse this node") {
    fail(PeerFailure::rejected);
    CHECK_FALSE(table.choose({}, cut + 1s, random));
  }
  SUBCASE("one that answers is enough for the others to be spared") {
    fail(PeerFailure::unreachable);
    table.succeeded(1, {});
    const std::vector<PeerId> asked{1};
    CHECK_FALSE(table.choose(asked, cut + 1s, random));
  }
  SUBCASE("with many peers the tries are as many in all") {
    PeerTable many = make_table(200);
    for (PeerId peer = 0; peer < 200; ++peer) {
      for (int i = 0; i < 10; ++i) many.failed(peer, PeerFailure::unreachable, cut, random);
    }
    CHECK_FALSE(many.choose({}, cut + 1999ms, random));
    CHECK(many.choose({}, cut + 2s, random));
  }
}

namespace {

dpwa::AnswerTime snapshot_after(dpwa::Duration took, bool same_host = false) {
  return {took, 500ms, true, same_host};
}

}  // namespace

TEST_CASE("a peer that answers late each time is asked rarely, and often again once it is quick") {
  PeerTable table = make_table(3);
  Random random(3);
  TimePoint now = start + 1h;
  std::vector<int> asked(3);
  const auto run = [&](int pulls, dpwa::Duration slow) {
    asked.assign(3, 0);
    for (int i = 0; i < pulls; ++i) {
      const PeerId peer = table.choose({}, now, random).value();
      ++asked[peer];
      const dpwa::Duration took = peer == 0 ? slow : 2ms;
      table.succeeded(peer, {});
      table.answered(peer, snapshot_after(took), now += took);
      now += 10ms;
    }
  };
  SUBCASE("later than half of the timeout") {
    run(3000, 480ms);
  }
  SUBCASE("or than eight times the others") {
    run(3000, 40ms);
  }
  CHECK(asked[0] < 50);  // where a third would be 1000
  CHECK(asked[0] > 2);
  CHECK(table.at(0).failures == 0);
  now += 2min;
  run(3000, 2ms);
  CHECK(asked[0] > 850);
}

TEST_CASE("a peer that answers late now and then costs no more than a ninth of the time") {
  for (const int every : {1, 2, 4, 8, 16}) {
    CAPTURE(every);
    PeerTable table = make_table(3);
    Random random(3);
    TimePoint now = start + 1h;
    dpwa::Duration lost{};
    int answers = 0;
    while (now < start + 1h + 5min) {
      const PeerId peer = table.choose({}, now, random).value();
      const bool late = peer == 0 && ++answers % every == 0;
      const dpwa::Duration took = late ? dpwa::Duration(480ms) : dpwa::Duration(2ms);
      if (late) lost += took;
      // With another process each time.
      if (peer == 0) table.introduced(0, static_cast<std::uint64_t>(random.next() >> 1));
      table.succeeded(peer, {});
      table.answered(peer, snapshot_after(took), now += took);
      now += 10ms;
    }
    CHECK(lost < dpwa::Duration(5min) / 9);
    CHECK(lost > dpwa::Duration(5min) / 50);  // and is asked all the same
  }
}

TEST_CASE("a peer that rests after a late answer is asked where no other answers, and not sooner") {
  PeerTable table = make_table(3);
  Random random(3);
  for (const PeerId peer : {1U, 2U}) {
    table.succeeded(peer, {});
    table.answered(peer, snapshot_after(2ms), start);
  }
  table.succeeded(0, {});
  table.answered(0, snapshot_after(400ms), start);
  CHECK(table.at(0).rests_until == start + 3200ms);
  CHECK(count_choices(table, {}, start, 1000)[0] == 0);
  table.returned(0, 9);  // a call, a restart
  CHECK(count_choices(table, {}, start, 1000)[0] == 0);
  const std::vector<PeerId> others{1, 2};
  CHECK_FALSE(table.choose(others, start, random));  // asked in this round already
  CHECK(count_choices(table, {}, start + 3200ms, 1000)[0] > 0);
  table.failed(1, PeerFailure::unreachable, start, random);
  CHECK(count_choices(table, {}, start, 1000)[0] == 0);
  table.set_out(2, true);
  CHECK(count_choices(table, {}, start, 1000)[0] == 1000);
}

TEST_CASE("a word that there is nothing, said late, takes score too") {
  PeerTable table = make_table(2);
  Random random(3);
  table.failed(0, PeerFailure::busy, start, random);
  table.answered(0, {480ms, 500ms, false, false}, start);
  CHECK(table.score(0, start) == 900);
  CHECK_FALSE(table.at(0).answer_time);
}

// Nodes 0 to 3 and 4 to 7 are on a host each: what is near answers in 0.1 ms, what is far in 20 ms.
TEST_CASE("peers of the same host are chosen no more often than others, though they are faster") {
  for (const bool shared_memory : {false, true}) {
    CAPTURE(shared_memory);
    PeerTable table = make_table(7);  // of node 0
    Random random(5);
    TimePoint now = start + 1h;
    std::vector<int> asked(7);
    for (int i = 0; i < 70000; ++i) {
      const PeerId peer = table.choose({}, now, random).value();
      ++asked[peer];
      const bool near = peer < 3;
      const dpwa::Duration took = near ? dpwa::Duration(100us) : dpwa::Duration(20ms);
      table.succeeded(peer, {});
      table.answered(peer, snapshot_after(took, near && shared_memory), now += took);
    }
    CHECK(chi_square(asked, 10000) < 38.3);  // exceeded once in 10^6 by chance
  }
}
