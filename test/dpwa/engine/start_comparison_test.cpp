#include "dpwa/engine/start_comparison.h"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <string>

using namespace std::chrono_literals;
using dpwa::PeerId;
using dpwa::StartComparison;
using dpwa::TakeOver;
using dpwa::TimePoint;

namespace {

// Models of one parameter, by peer; what a node that starts ends with, and what it did.
struct Comparison {
  std::map<PeerId, double> weights;
  std::map<PeerId, TakeOver> takes{};  // else: taken
  double own = 0;
  std::string log{};

  TakeOver run(PeerId best, const std::vector<PeerId>& others, unsigned blocks = 1) {
    const TimePoint now(1h);
    StartComparison comparison(best, others, {blocks, 8, 2, now + 1s});
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
