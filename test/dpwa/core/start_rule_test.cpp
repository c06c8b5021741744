#include "dpwa/core/start_rule.h"

#include <doctest/doctest.h>

#include <limits>

using namespace std::chrono_literals;
using dpwa::decide_start;
using dpwa::Duration;
using dpwa::PeerStart;
using dpwa::StartAction;
using dpwa::StartDecision;
using dpwa::StartRuleOptions;
using dpwa::StartView;

namespace {

const StartView unknown{};
const StartView unreachable{PeerStart::unreachable};
const StartView joining{PeerStart::joining};
const StartView refused{PeerStart::refused};
StartView ready(double clock, unsigned failed_pulls = 0) {
  return {PeerStart::ready, clock, 1, failed_pulls};
}

StartDecision decide(const std::vector<StartView>& nodes, std::size_t self, Duration elapsed = 0ns,
                     std::optional<double> resumed = std::nullopt) {
  return decide_start(nodes, self, resumed, elapsed, {.wait = 10s});
}
StartAction action(const std::vector<StartView>& nodes, std::size_t self, Duration elapsed = 0ns,
                   std::optional<double> resumed = std::nullopt) {
  return decide(nodes, self, elapsed, resumed).action;
}

}  // namespace

TEST_CASE("a node alone in its cluster begins at once") {
  CHECK(action({unknown}, 0) == StartAction::begin);
}

TEST_CASE("the first node begins at once when all others have answered") {
  CHECK(action({unknown, joining, joining}, 0) == StartAction::begin);
}

TEST_CASE("the first node waits for silent nodes, up to the limit") {
  for (const StartView& silent : {unknown, unreachable}) {
    CHECK(action({unknown, joining, silent}, 0, 0ns) == StartAction::wait);
    CHECK(action({unknown, joining, silent}, 0, 10s - 1ns) == StartAction::wait);
    CHECK(action({unknown, joining, silent}, 0, 10s) == StartAction::begin);
  }
}

TEST_CASE("a node waits for one before it, but not for ever: it may never begin") {
  CHECK(action({joining, unknown, joining}, 1) == StartAction::wait);
  CHECK(action({joining, unknown, unreachable}, 1, 30s - 1ns) == StartAction::wait);
  CHECK(action({joining, unknown, unreachable}, 1, 30s) == StartAction::begin);
}

TEST_CASE(
    "weights come from a node of the file before one that joined, whatever clock that claims") {
  StartView joined = ready(1e9);
  joined.joined = true;
  CHECK(decide({joined, unknown, ready(5)}, 1).peer == 2);
  CHECK(decide({joined, unknown, ready(5, 1)}, 1).peer == 0);
  CHECK(decide({joined, unknown, joining}, 1).peer == 0);
}

TEST_CASE("a ready peer that gives nothing is asked after the others, and in the end no more") {
  CHECK(decide({ready(9, 1), unknown, ready(5)}, 1).peer == 2);
  CHECK(decide({ready(9, 1), unknown, ready(5, 2)}, 1).peer == 0);
  CHECK(decide({ready(9, 2), unknown, ready(5, 2)}, 1).peer == 0);
  CHECK(decide({ready(9, 3), unknown, ready(5, 2)}, 1).peer == 2);
  CHECK(action({ready(9, 3), unknown, joining}, 1, 9s) == StartAction::wait);
  CHECK(action({ready(9, 3), unknown, joining}, 1, 10s) == StartAction::begin);
  CHECK(action({ready(9, 3), unknown, joining}, 1, 0s, 4.0) == StartAction::wait);
}

TEST_CASE("with the first node dead the next running one begins after the wait") {
  CHECK(action({unreachable, unknown, joining}, 1, 9s) == StartAction::wait);
  CHECK(action({unreachable, unknown, joining}, 1, 10s) == StartAction::begin);
  CHECK(action({unreachable, joining, unknown}, 2, 10s) == StartAction::wait);
}

TEST_CASE("a refused node has answered but is no source and no reason to wait") {
  CHECK(action({refused, unknown, joining}, 1) == StartAction::begin);
  CHECK(action({unknown, refused, refused}, 0) == StartAction::begin);
  CHECK(action({refused, unknown}, 1, 0ns, 50.0) == StartAction::begin);
}

TEST_CASE("a ready peer is pulled from at once, the one with the highest clock first") {
  const StartDecision decision = decide({unreachable, ready(5), unknown, ready(9), joining}, 2);
  CHECK(decision.action == StartAction::pull_from);
  CHECK(decision.peer == 3);
}

TEST_CASE("of ready peers with equal clocks the first is pulled from") {
  CHECK(decide({unknown, joining, ready(9), ready(9)}, 0).peer == 2);
}

TEST_CASE("a clock that is not finite does not hide a sound one") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(decide({unknown, ready(nan), ready(3), ready(infinity)}, 0).peer == 2);
  CHECK(decide({unknown, ready(nan)}, 0).action == StartAction::pull_from);
}

TEST_CASE("the own entry is ignored whatever it holds") {
  for (const StartView& own : {unknown, unreachable, joining, refused, ready(100)}) {
    CHECK(action({own, joining}, 0) == StartAction::begin);
    CHECK(action({joining, own}, 1, 29s) == StartAction::wait);
    CHECK(decide({own, ready(5)}, 0).peer == 1);
  }
}

TEST_CASE("a resumed node begins on its own weights when no peer is more than one ahead") {
  CHECK(action({unknown, ready(50)}, 0, 0ns, 50.0) == StartAction::begin);
  CHECK(action({unknown, ready(51)}, 0, 0ns, 50.0) == StartAction::begin);
  CHECK(action({unknown, ready(10), joining}, 0, 0ns, 50.0) == StartAction::begin);
}

TEST_CASE("a resumed node that fell behind pulls in full") {
  const StartDecision decision = decide({unknown, ready(40), ready(51.5)}, 0, 0ns, 50.0);
  CHECK(decision.action == StartAction::pull_from);
  CHECK(decision.peer == 2);
}

TEST_CASE("resumed nodes begin together, whatever their place in the file") {
  CHECK(action({joining, joining, unknown}, 2, 0ns, 50.0) == StartAction::begin);
  CHECK(action({joining, unreachable, unknown}, 2, 9s, 50.0) == StartAction::wait);
  CHECK(action({joining, unreachable, unknown}, 2, 10s, 50.0) == StartAction::begin);
}
