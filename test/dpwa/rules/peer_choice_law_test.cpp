// The choice of a peer has the distribution of drawing a number for each of them, one by one.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "dpwa/rules/peer_table.h"

using namespace std::chrono_literals;
using dpwa::Backoff;
using dpwa::Duration;
using dpwa::FlowControl;
using dpwa::PeerFailure;
using dpwa::PeerId;
using dpwa::PeerRecord;
using dpwa::PeerTable;
using dpwa::Random;
using dpwa::TimePoint;

namespace {

const TimePoint start{1h};
const Backoff backoff{100ms, 5s, 0.5};

PeerTable make_table(std::size_t peers, FlowControl flow_control = {}) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < peers; ++i)
    names.push_back(std::string("w").append(std::to_string(i)));
  return PeerTable(names, flow_control, backoff);
}

// The rule as it is stated: argmax(score + uniform{10..1000}) over all that do not wait.
class OneByOne {
 public:
  OneByOne(const PeerTable& table, TimePoint now) : table_(table), now_(now) {
    for (PeerId peer = 0; peer < table.size(); ++peer) cut_off_ = cut_off_ && !is_sound(peer);
  }

  std::optional<PeerId> choose(const std::vector<PeerId>& excluded, Random& random) const {
    std::optional<PeerId> best;
    double best_value = 0;
    std::uint64_t ties = 0;
    for (PeerId peer = 0; peer < table_.size(); ++peer) {
      if (waits(peer) || std::ranges::find(excluded, peer) != excluded.end()) continue;
      const double value = table_.score(peer, now_) + static_cast<double>(10 + random.below(991));
      if (!best || value > best_value) {
        best = peer;
        best_value = value;
        ties = 1;
      } else if (value == best_value && random.below(++ties) == 0) {
        best = peer;
      }
    }
    return best;
  }

  bool nobody_answers() const {
    bool nobody = table_.size() > 0;
    for (PeerId peer = 0; peer < table_.size(); ++peer) {
      const PeerRecord& record = table_.at(peer);
      nobody = nobody && (record.out || record.failures > 0);
    }
    return nobody;
  }

 private:
  bool is_sound(PeerId peer) const {
    const PeerRecord& record = table_.at(peer);
    if (record.out || record.failures > 0) return false;
    if (record.rests_until > now_) return false;
    return !record.last_failure || *record.last_failure == PeerFailure::busy;
  }
  bool tried_soon(const PeerRecord& record) const {
    if (record.failures == 0 || record.last_failure == PeerFailure::rejected) return false;
    const Duration shared = std::max<Duration>(backoff.initial, 10ms * table_.size());
    const int share = record.last_failure == PeerFailure::timed_out ? 5 : 1;
    return now_ >= record.failed_at + std::min(backoff.max, shared * share);
  }
  bool waits(PeerId peer) const {
    const PeerRecord& record = table_.at(peer);
    const bool backs_off = record.retry_at > now_ && !(cut_off_ && tried_soon(record));
    const bool rests = record.rests_until > now_ && !cut_off_;
    return record.out || backs_off || rests;
  }

  const PeerTable& table_;
  const TimePoint now_;
  bool cut_off_ = true;
};

// How often each peer was chosen; the last entry: nobody.
template <typename Choose>
std::vector<double> count(std::size_t peers, int draws, const Choose& choose) {
  std::vector<double> counts(peers + 1);
  for (int i = 0; i < draws; ++i) {
    const std::optional<PeerId> peer = choose();
    ++counts.at(peer ? *peer : peers);
  }
  return counts;
}

// Chi-square of two samples, as a deviation of the normal distribution (Wilson, Hilferty 1931).
double deviation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  double freedom = -1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] + b[i] < 10) continue;
    sum += std::pow(a[i] - b[i], 2) / (a[i] + b[i]);
    ++freedom;
  }
  if (freedom < 1) return 0;
  const double variance = 2 / (9 * freedom);
  return (std::cbrt(sum / freedom) - (1 - variance)) / std::sqrt(variance);
}

constexpr double most = 4.75;  // exceeded once in 10^6 by chance

double compare(const PeerTable& table, const std::vector<PeerId>& excluded, TimePoint now,
               int draws, std::uint64_t seed = 7) {
  Random random(seed);
  Random other(seed + 1000);
  const OneByOne reference(table, now);
  CHECK(table.nobody_answers() == reference.nobody_answers());
  const auto ours = count(table.size(), draws, [&] { return table.choose(excluded, now, random); });
  const auto theirs = count(table.size(), draws, [&] { return reference.choose(excluded, other); });
  CHECK((ours.back() == draws) == (theirs.back() == draws));
  return deviation(ours, theirs);
}

// Takes 100 from the score of a peer that answers, and lets it wait for nothing.
void take_score(PeerTable& table, PeerId peer, int times, TimePoint now) {
  for (int i = 0; i < times; ++i) table.answered(peer, {400ms, 500ms, false, false}, now);
}

}  // namespace

TEST_CASE("peers that were never asked are chosen as if a number were drawn for each") {
  for (const std::size_t peers : {1U, 2U, 40U, 300U}) {
    CAPTURE(peers);
    CHECK(compare(make_table(peers), {}, start, 30000) < most);
  }
}

TEST_CASE("a peer with less score wins against many equal ones with the exact probability") {
  constexpr int draws = 400000;
  for (const std::size_t equals : {1U, 5U, 60U}) {
    CAPTURE(equals);
    PeerTable table = make_table(equals + 1);
    take_score(table, 0, 1, start);
    REQUIRE(table.score(0, start) == 900);
    // With p = 1 / 991, and q the share of the draws below its value: the mean of 1 / (k + 1) over
    // the k of the others that draw the same, none of them more.
    double expected = 0;
    const double p = 1.0 / 991;
    for (int value = 101; value <= 991; ++value) {
      const double q = (value - 100 - 1) * p;
      const auto n = static_cast<double>(equals) + 1;
      expected += p * (std::pow(q + p, n) - std::pow(q, n)) / (n * p);
    }
    Random random(3);
    int won = 0;
    for (int i = 0; i < draws; ++i) won += table.choose({}, start, random) == 0 ? 1 : 0;
    const double mean = draws * expected;
    CHECK(std::abs(won - mean) < 4.9 * std::sqrt(mean * (1 - expected)));
  }
}

TEST_CASE("peers of the same lower score share the ties among themselves and with the others") {
  PeerTable table = make_table(30);
  for (PeerId peer = 0; peer < 25; ++peer) take_score(table, peer, 1 + peer % 2, start);
  CHECK(compare(table, {}, start, 100000) < most);
  CHECK(compare(table, {26, 27, 28, 29}, start, 100000) < most);
  CHECK(compare(table, {25, 26, 27, 28, 29}, start, 100000) < most);
}

TEST_CASE("peers that are looked at one by one win half of the choices beside as many equal ones") {
  // Here several draw the same highest number nearly always.
  PeerTable table = make_table(6000);
  Random random(4);
  for (PeerId peer = 0; peer < 6000; peer += 2)
    table.failed(peer, PeerFailure::stale, start, random);
  constexpr int draws = 3000;
  int won = 0;
  for (int i = 0; i < draws; ++i)
    won += table.choose({}, start + 1s, random).value() % 2 == 0 ? 1 : 0;
  CHECK(std::abs(won - draws / 2) < 4.9 * std::sqrt(draws) / 2);
}

TEST_CASE("a busy peer is left alone for its pause, whatever others answer meanwhile") {
  PeerTable table = make_table(2);
  Random random(6);
  table.failed(0, PeerFailure::busy, start, random);
  table.succeeded(1, {});
  table.answered(1, {1ms, 500ms, true, false}, start + 1ms);
  for (int i = 0; i < 100; ++i) CHECK(table.choose({}, start + 2ms, random) == 1);
  CHECK(compare(table, {}, start + 1s, 1000) < most);
}

TEST_CASE("excluded peers change nothing in the choice among the others") {
  PeerTable table = make_table(40);
  take_score(table, 7, 2, start);
  table.set_out(12, true);
  CHECK(compare(table, {3, 39, 3, 0, 12, 7, 90}, start, 60000) < most);
  std::vector<PeerId> all_but_one(40);
  for (PeerId peer = 0; peer < 40; ++peer) all_but_one[peer] = 39 - peer;
  std::erase(all_but_one, 21U);
  Random random(1);
  CHECK(table.choose(all_but_one, start, random) == 21);
  all_but_one.push_back(21);
  CHECK_FALSE(table.choose(all_but_one, start, random));
}

TEST_CASE("where most peers are gone the others are chosen equally, asked before or not") {
  PeerTable table = make_table(500);
  table.succeeded(250, {});
  for (PeerId peer = 0; peer < 500; ++peer) {
    if (peer % 50 != 0) table.set_out(peer, true);
  }
  CHECK(compare(table, {100}, start, 60000) < most);
}

TEST_CASE("when no peer answers, the choice is among those whose back-off is over") {
  PeerTable table = make_table(12);
  Random random(9);
  for (PeerId peer = 0; peer < 12; ++peer) {
    if (peer % 4 == 0) table.set_out(peer, true);
    for (int i = 0; i < 4 && peer % 6 != 0; ++i) {
      const auto failure = peer % 3 == 1 ? PeerFailure::timed_out : PeerFailure::unreachable;
      table.failed(peer, failure, start + 1ms * peer, random);
    }
  }
  table.set_out(6, true);
  REQUIRE(table.nobody_answers());
  for (const Duration after : {50ms, 125ms, 600ms, 3000ms, 20000ms})
    CHECK(compare(table, {1}, start + after, 20000) < most);
}

namespace {

// Anything that can happen to a peer.
void let_happen(PeerTable& table, TimePoint now, Random& random) {
  const auto peer = static_cast<PeerId>(random.below(table.size()));
  switch (1 + random.below(11)) {
    case 1:
      table.set_out(peer, random.bernoulli(0.6));
      break;
    case 2:
      table.returned(peer, random.below(3));
      break;
    case 3:
      table.reached(peer, random.below(3), now);
      break;
    case 4:
      table.put(peer, std::string("x").append(std::to_string(random.below(5))));
      break;
    case 5:
    case 6:
    case 7:
      table.failed(peer, static_cast<PeerFailure>(random.below(12)), now, random);
      break;
    default:
      table.succeeded(peer, {});
      table.answered(peer, {1ms * random.below(500), 500ms, true, random.bernoulli(0.2)}, now);
  }
}

}  // namespace

TEST_CASE("whatever happens to peers, each is chosen as if a number were drawn for each") {
  for (const bool success_raises : {false, true}) {
    CAPTURE(success_raises);
    FlowControl flow_control;
    if (success_raises) flow_control.initial = 500;
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      CAPTURE(seed);
      Random random(seed);
      PeerTable table = make_table(2 + random.below(14), flow_control);
      TimePoint now = start;
      for (int moment = 0; moment < 6; ++moment) {
        for (int i = 0; i < 20; ++i)
          let_happen(table, now += 1ms * random.below(i % 2 == 0 ? 10 : 200), random);
        worst = std::max(worst, compare(table, {1}, now, 1000, random.next() % 1000000));
        now += 1ms * random.below(20000);
        worst = std::max(worst, compare(table, {}, now, 1000, random.next() % 1000000));
      }
    }
    CHECK(worst < 5.5);  // of 480, exceeded once in 10^5
  }
}

TEST_CASE("a table keeps records of the peers that its node has had to do with, and of no others") {
  std::vector<std::string> names(10000, "w");
  for (std::size_t i = 0; i < names.size(); ++i) names[i].append(std::to_string(i));
  PeerTable table(names, FlowControl{}, backoff);
  Random random(1);
  for (PeerId peer = 0; peer < table.size(); ++peer) {
    table.returned(peer, 0);
    table.shares_lineage(peer);
    if (peer % 3 == 0) table.set_out(peer, true);
  }
  CHECK(table.known() == 0);
  for (int pull = 0; pull < 64; ++pull) {
    const PeerId peer = table.choose({}, start, random).value();
    CHECK(peer % 3 != 0);
    table.succeeded(peer, {});
    table.answered(peer, {1ms, 500ms, true, false}, start);
  }
  CHECK(table.known() <= 64);
  CHECK(table.known() > 60);
  CHECK(table.at(3).out);
  CHECK_FALSE(table.at(4).out);
}
