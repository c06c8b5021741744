#include "dpwa/engine/start_up.h"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/engine/peer_answer.h"
#include "dpwa/engine/start_comparison.h"

using namespace std::chrono_literals;
using dpwa::Listing;
using dpwa::paced;
using dpwa::PeerAnswer;
using dpwa::PeerFailure;
using dpwa::PeerId;
using dpwa::Random;
using dpwa::StartComparison;
using dpwa::StartUp;
using dpwa::StartUpOptions;
using dpwa::TakeOver;
using dpwa::TimePoint;

namespace {

constexpr TimePoint begun{1h};

StartUpOptions second_of(std::size_t nodes) {
  StartUpOptions options;
  options.name = "w2";
  options.position = 1;
  options.file_peers = nodes - 1;
  options.timeout = 500ms;
  options.new_lineage = 22;
  return options;
}

PeerAnswer ready_at(double clock, std::uint64_t lineage = 7) {
  PeerAnswer answer;
  answer.asked = answer.listed = answer.vouched_for = true;
  answer.joining = false;
  answer.clock = clock;
  answer.lineage = lineage;
  answer.name = "w1";
  return answer;
}

PeerAnswer unreachable() {
  PeerAnswer answer = ready_at(0);
  answer.failure = PeerFailure::unreachable;
  return answer;
}

struct Starting {
  StartUp start;
  Random random{1};

  explicit Starting(const StartUpOptions& options) : start(options, begun) {}
  template <typename Expected>
  Expected expect(TimePoint now = begun) {
    const auto action = start.next(now, random);
    REQUIRE(std::holds_alternative<Expected>(action));
    return std::get<Expected>(action);
  }
  // Up to the first look.
  void open() {
    CHECK(expect<StartUp::Publish>().lineage == 0);
    start.published(true);
    expect<StartUp::Greet>();
  }
};

TEST_CASE("the pause between greetings grows with the cluster beyond 64 nodes") {
  for (const std::size_t nodes : {0U, 1U, 64U}) CHECK(paced(25ms, nodes) == 25ms);
  CHECK(paced(25ms, 65) == 50ms);
  CHECK(paced(25ms, 10'000) == 157 * 25ms);
}

}  // namespace

TEST_CASE("the first snapshot of a node never serves as weights, not even after a resume") {
  StartUpOptions options = second_of(2);
  options.weights = {100, 7, true};
  Starting node(options);
  node.open();
  node.start.greeted({ready_at(100.5)}, begun);
  const auto shown = node.expect<StartUp::Publish>();
  CHECK(shown.lineage == 7);
  CHECK(shown.clock == 100);
  node.start.published(true);
  node.expect<StartUp::Begin>();
}

TEST_CASE("a resumed node without a lineage begins a new one") {
  StartUpOptions options = second_of(2);
  options.weights = {100, 0, true};
  Starting node(options);
  node.open();
  node.start.greeted({ready_at(5)}, begun);
  CHECK(node.expect<StartUp::Publish>().lineage == 22);
}

TEST_CASE("a full pull may take half of what is left, and twice the wait where a peer trains") {
  Starting node(second_of(2));
  node.open();
  node.start.greeted({ready_at(5)}, begun + 2s);
  CHECK(node.expect<StartUp::Pull>(begun + 2s).timeout == 9s);  // of 20 s
  node.start.pulled(TakeOver::failed, 0, 0, begun + 18s);
  node.expect<StartUp::Wait>(begun + 18s);
  node.expect<StartUp::Greet>(begun + 18s);
  node.start.greeted({ready_at(5)}, begun + 18s);
  CHECK(node.expect<StartUp::Pull>(begun + 18s).timeout == 1s);
}

TEST_CASE(
    "a process that is stopped during its start takes the weights that others train by then") {
  Starting node(second_of(2));
  node.open();
  SUBCASE("in a look") {
    node.start.greeted({unreachable()}, begun + 60s);  // what had come was too late
    node.expect<StartUp::Greet>(begun + 60s);
  }
  SUBCASE("in a wait") {
    node.start.greeted({unreachable()}, begun);
    node.expect<StartUp::Wait>();
    node.expect<StartUp::Greet>(begun + 60s);
  }
  node.start.greeted({ready_at(5)}, begun + 60s);
  node.expect<StartUp::Pull>(begun + 60s);
}

TEST_CASE("a node brings no weights after a look that took too long, three times at most") {
  StartUpOptions options = second_of(1);
  options.listing = options.rule.listing = Listing::by_seeds;
  options.position = 0;
  options.join_by = "w1";
  options.rule.start_wait = 2s;
  Starting node(options);
  node.expect<StartUp::Publish>();
  node.start.published(true);
  const auto look = [&](TimePoint now) {
    node.expect<StartUp::Visit>(now);
    node.start.visited({unreachable()}, now);
    node.expect<StartUp::Greet>(now);
  };
  look(begun + 1500ms);
  SUBCASE("takes those that others train") {
    node.start.greeted({unreachable()}, begun + 3s);
    look(begun + 3s);
    PeerAnswer trains = ready_at(5);
    trains.listed = false;
    node.start.greeted({trains}, begun + 3s);
    node.expect<StartUp::Pull>(begun + 3s);
  }
  SUBCASE("brings its own in the end") {
    TimePoint now = begun + 3s;
    for (int looks = 0; looks < 3; ++looks, now += 1500ms) {
      node.start.greeted({unreachable()}, now);
      look(now);
    }
    node.start.greeted({unreachable()}, now);
    CHECK(node.expect<StartUp::Publish>(now).lineage == 22);
  }
}

TEST_CASE("looks that all last too long end") {
  Starting node(second_of(2));
  node.open();
  for (int looks = 1; looks <= 3; ++looks) {
    node.start.greeted({unreachable()}, begun + looks * 10s);
    node.expect<StartUp::Greet>(begun + looks * 10s);
  }
  node.start.greeted({unreachable()}, begun + 40s);
  node.expect<StartUp::Wait>(begun + 40s);
}

TEST_CASE("a peer that is busy for an eighth of the wait counts as having given nothing") {
  Starting node(second_of(2));
  node.open();
  TimePoint now = begun;
  int pulls = 0;
  for (; now < begun + 9s; now += 100ms) {  // w1 trains: nobody brings weights
    node.start.greeted({ready_at(5)}, now);
    const auto action = node.start.next(now, node.random);
    if (!std::holds_alternative<StartUp::Pull>(action)) break;
    ++pulls;
    node.start.pulled(TakeOver::busy, 0, 0, now);
    node.expect<StartUp::Wait>(now);
    node.expect<StartUp::Greet>(now);
  }
  CHECK(now - begun > 3 * 1250ms);
  CHECK(now - begun < 3 * 1250ms + 500ms);
  CHECK(pulls > 30);
}

TEST_CASE("weights that could not be shown are shown after the next look") {
  StartUpOptions options = second_of(2);
  options.weights = {3, 7, true};
  Starting node(options);
  node.open();
  PeerAnswer joining = ready_at(0, 0);
  joining.joining = true;
  for (const bool done : {false, true}) {
    node.start.greeted({joining}, begun);
    node.expect<StartUp::Publish>();
    node.start.published(done);
    node.expect<StartUp::Wait>();
    node.expect<StartUp::Greet>();
  }
  node.start.greeted({joining}, begun);
  node.expect<StartUp::Wait>();
}

TEST_CASE("a node that every peer refuses gives up at once, with the last reason") {
  Starting node(second_of(3));
  node.open();
  PeerAnswer refusing = ready_at(0);
  refusing.failure = PeerFailure::rejected;
  refusing.detail = "another model";
  node.start.greeted({refusing, refusing}, begun);
  CHECK(node.expect<StartUp::Fail>().line ==
        "node 'w2' was refused by every node that answered: another model");
}

TEST_CASE(
    "a name that one of two peers refused is refused after the wait, though both are silent") {
  for (const bool admitted : {false, true}) {
    CAPTURE(admitted);
    StartUpOptions options = second_of(3);
    options.rule.start_wait = 2s;
    Starting node(options);
    node.open();
    const PeerAnswer silent = unreachable();
    PeerAnswer refusing = silent;
    refusing.failure = PeerFailure::rejected;
    refusing.refuses_name = true;
    refusing.detail = "the name 'w2' is taken";
    node.start.greeted({refusing, silent}, begun);
    node.expect<StartUp::Wait>();
    node.expect<StartUp::Greet>();
    if (admitted) {
      node.start.greeted({ready_at(0), silent}, begun + 500ms);
      node.expect<StartUp::Pull>();
      continue;
    }
    node.start.greeted({silent, silent}, begun + 500ms);
    node.expect<StartUp::Wait>(begun + 500ms);
    node.expect<StartUp::Greet>(begun + 2s);
    node.start.greeted({silent, silent}, begun + 2s);
    CHECK(node.expect<StartUp::Fail>(begun + 2s).line ==
          "node 'w2' was refused: the name 'w2' is taken");
  }
}

TEST_CASE("one that joins visits its addresses until one answers, and fails after the wait") {
  StartUpOptions options = second_of(1);
  options.listing = options.rule.listing = Listing::joins;
  options.join_by = "host:1";
  for (const bool answers : {true, false}) {
    Starting node(options);
    node.expect<StartUp::Publish>();
    node.start.published(true);
    PeerAnswer seed = ready_at(0);
    if (!answers) seed.failure = PeerFailure::unreachable;
    seed.detail = "connection refused";
    node.expect<StartUp::Visit>();
    node.start.visited({seed}, begun);
    if (answers) {
      node.expect<StartUp::Greet>();
      CHECK(node.start.take_lines().front().text == "joined by 'w1'");
      continue;
    }
    node.expect<StartUp::Wait>();
    node.expect<StartUp::Visit>();
    node.start.visited({seed}, begun + 10s);
    CHECK(node.expect<StartUp::Fail>().line ==
          "node 'w2' cannot join by host:1: connection refused");
  }
}

namespace {

StartUpOptions seeded() {
  StartUpOptions options;
  options.name = "w2";
  options.join_by = "seed:24000";
  options.timeout = 500ms;
  options.new_lineage = 22;
  options.listing = options.rule.listing = Listing::by_seeds;
  return options;
}

PeerAnswer joining_as(const std::string& name) {
  PeerAnswer answer = ready_at(0, 0);
  answer.listed = false;
  answer.joining = true;
  answer.name = name;
  return answer;
}

// Up to the decision that follows the first look.
void look(Starting& node, const std::vector<PeerAnswer>& members, TimePoint now) {
  node.expect<StartUp::Visit>(now);
  node.start.visited({}, now);
  node.expect<StartUp::Greet>(now);
  node.start.greeted(members, now);
}

}  // namespace

TEST_CASE("by seeds the first of the names brings the weights, once it has found the others") {
  for (const auto& [name, brings] : {std::pair("w1", false), std::pair("w3", true)}) {
    CAPTURE(name);
    Starting node(seeded());
    node.expect<StartUp::Publish>();
    node.start.published(true);
    look(node, {joining_as(name)}, begun);
    if (brings) {
      CHECK(node.expect<StartUp::Publish>().lineage == 22);
    } else {
      node.expect<StartUp::Wait>();
    }
  }
}

TEST_CASE("by seeds a node that finds nobody visits them again, and begins alone with a line") {
  Starting node(seeded());
  node.expect<StartUp::Publish>();
  node.start.published(true);
  for (auto now = begun; now < begun + 5s; now += 1s) {
    look(node, {}, now);
    node.expect<StartUp::Wait>(now);
  }
  node.start.take_lines();  // that it waits
  look(node, {}, begun + 5s);
  CHECK(node.expect<StartUp::Publish>(begun + 5s).lineage == 22);
  node.start.published(true);
  node.expect<StartUp::Begin>(begun + 5s);
  const auto lines = node.start.take_lines();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].text == "found no other node by seed:24000 in 5 s: begins alone");
}

TEST_CASE("by seeds a node does not begin alone beside one that refuses it") {
  PeerAnswer refusal = unreachable();
  refusal.failure = PeerFailure::rejected;
  refusal.detail = "another model";
  Starting node(seeded());
  node.expect<StartUp::Publish>();
  node.start.published(true);
  for (auto now = begun; now < begun + 10s; now += 1s) {
    node.expect<StartUp::Visit>(now);
    node.start.visited({refusal, unreachable()}, now);
    node.expect<StartUp::Greet>(now);
    node.start.greeted({}, now);
    node.expect<StartUp::Wait>(now);
  }
  node.expect<StartUp::Visit>(begun + 10s);
  node.start.visited({refusal}, begun + 10s);
  SUBCASE("others that have found it meanwhile take its weights") {
    node.expect<StartUp::Greet>(begun + 10s);
    node.start.greeted({joining_as("w3")}, begun + 10s);
    CHECK(node.expect<StartUp::Publish>(begun + 10s).lineage == 22);
    return;
  }
  node.expect<StartUp::Greet>(begun + 10s);
  node.start.greeted({}, begun + 10s);
  CHECK(node.expect<StartUp::Fail>(begun + 10s).line ==
        "node 'w2' was refused by its seeds: another model");
}

TEST_CASE("among more than 64 nodes looks are rarer, and from 256 on the node warns") {
  for (const std::size_t nodes : {2U, 64U, 128U, 1000U}) {
    CAPTURE(nodes);
    Starting node(second_of(nodes));
    node.open();
    CHECK(node.start.take_lines().size() == (nodes >= 256 ? 1 : 0));
    node.start.greeted(std::vector<PeerAnswer>(nodes - 1, unreachable()), begun);
    const auto wait = node.expect<StartUp::Wait>().time;
    const auto nominal = 25ms * (1 + (nodes - 1) / 64);
    CHECK(wait >= nominal * 3 / 4);
    CHECK(wait <= nominal * 5 / 4);
  }
}

TEST_CASE("looks become rarer, down to one a second, until one brings news") {
  StartUpOptions options = second_of(3);
  options.rule.start_wait = 60s;
  Starting node(options);
  node.open();
  PeerAnswer joining = ready_at(0, 0);
  joining.joining = true;
  const PeerAnswer absent = unreachable();
  const auto pause_after = [&](const std::vector<PeerAnswer>& answers) {
    node.start.greeted(answers, begun);
    const auto pause = node.expect<StartUp::Wait>().time;
    node.expect<StartUp::Greet>();
    return pause;
  };
  for (int look = 0; look < 8; ++look) CHECK(pause_after({joining, absent}) <= 1250ms);
  CHECK(pause_after({joining, absent}) >= 750ms);
  CHECK(pause_after({absent, absent}) <= 32ms);
  CHECK(pause_after({joining, absent}) <= 32ms);
}

TEST_CASE("however rare the looks are, one is made when a node may bring its weights or begin") {
  StartUpOptions options = second_of(2);
  options.rule.start_wait = 8s;
  Starting node(options);
  node.open();
  const PeerAnswer absent = unreachable();
  TimePoint now = begun;
  for (bool brought = false; !brought;) {
    REQUIRE(now <= begun + 4s);
    node.start.greeted({absent}, now);
    const auto action = node.start.next(now, node.random);
    brought = std::holds_alternative<StartUp::Publish>(action);
    if (brought) continue;
    now += std::get<StartUp::Wait>(action).time;
    CHECK(std::holds_alternative<StartUp::Greet>(node.start.next(now, node.random)));
  }
  CHECK(now == begun + 4s);
}

namespace {

// Models of one parameter, by peer; what a node that starts ends with, and what it did.
struct Comparison {
  std::map<PeerId, double> weights;
  std::map<PeerId, TakeOver> takes{};  // else: taken
  double own = 0;
  std::string log{};

  TakeOver run(PeerId best, const std::vector<PeerId>& others, unsigned blocks = 1) {
    const TimePoint now(1h);
    StartComparison comparison(best, others, {blocks, now + 1s});
    while (!comparison.result()) {
      if (const auto source = comparison.source()) {
        const auto found = takes.find(*source);
        const TakeOver outcome = found == takes.end() ? TakeOver::taken : found->second;
        if (outcome == TakeOver::taken) own = weights.at(*source);
        log += 't' + std::to_string(*source);
        comparison.took_over(outcome);
      } else if (comparison.publishes()) {
        log += 'p';
        comparison.published();
      } else if (const auto ask = comparison.next_distance(now)) {
        ++asked;
        const double difference = weights.at(ask->peer) - own;
        comparison.measured(difference * difference / blocks);
      }
    }
    return *comparison.result();
  }
  int asked = 0;
};

}  // namespace

TEST_CASE("without others to compare with the best peer's weights are taken over as they are") {
  Comparison comparison{{{0, 100}}};
  CHECK(comparison.run(0, {}) == TakeOver::taken);
  CHECK(comparison.own == 100);
  CHECK(comparison.log == "t0");
}

TEST_CASE("weights about as far from the others as those from one another are kept") {
  Comparison comparison{{{0, 1.3}, {1, 1.0}, {2, 1.1}, {3, 1.2}}};
  CHECK(comparison.run(0, {1, 2, 3}) == TakeOver::taken);
  CHECK(comparison.own == 1.3);
  CHECK(comparison.log == "t3pt0p");
}

TEST_CASE("weights that are far from most others are given back, in one block or in several") {
  for (const unsigned blocks : {1U, 4U}) {
    Comparison comparison{{{0, 100}, {1, 1.0}, {2, 1.1}, {3, 1.2}}};
    CHECK(comparison.run(0, {1, 2, 3}, blocks) == TakeOver::taken);
    CHECK(comparison.own == 1.2);
    CHECK(comparison.log == "t3pt0pt3p");
    // Each of the four once; after the second and the third takeover the three at a distance again
    // until there are eight distances.
    CHECK(comparison.asked == static_cast<int>(blocks) * (4 + 9 + 9));
  }
}

TEST_CASE("where another peer gives nothing the best one's weights are not compared") {
  Comparison comparison{{{0, 100}, {1, 1.0}, {2, 1.1}, {3, 1.2}}, {{3, TakeOver::failed}}};
  CHECK(comparison.run(0, {1, 2, 3}) == TakeOver::taken);
  CHECK(comparison.own == 100);
}

TEST_CASE("where the best peer gives nothing another one's weights are as good") {
  Comparison comparison{{{0, 100}, {1, 1.0}, {2, 1.1}, {3, 1.2}}, {{0, TakeOver::busy}}};
  CHECK(comparison.run(0, {1, 2, 3}) == TakeOver::taken);
  CHECK(comparison.own == 1.2);
  Comparison neither{{}, {{0, TakeOver::busy}, {3, TakeOver::failed}}};
  CHECK(neither.run(0, {1, 2, 3}) == TakeOver::busy);
}

TEST_CASE("no distance is asked for after the limit") {
  dpwa::DistanceSurvey survey({1, 2, 3}, 8, 1);
  CHECK_FALSE(survey.next(TimePoint(2h), TimePoint(1h)));
  CHECK_FALSE(survey.median());
}
