#include "dpwa/rules/start_rule.h"

#include <doctest/doctest.h>

#include <limits>

using namespace std::chrono_literals;
using dpwa::decide_start;
using dpwa::Duration;
using dpwa::Listing;
using dpwa::PeerStart;
using dpwa::StartAction;
using dpwa::StartDecision;
using dpwa::StartRuleOptions;
using dpwa::StartView;
using dpwa::StartWeights;

namespace {

const StartView unknown{};
const StartView unreachable{PeerStart::unreachable};
const StartView joining{PeerStart::joining};
const StartView refused{PeerStart::refused};
StartView ready(double clock, unsigned failed_pulls = 0) {
  return {PeerStart::ready, clock, 1, failed_pulls};
}
StartView waiting(double clock, std::uint64_t lineage = 1) {
  return {PeerStart::waiting, clock, lineage};
}

using Own = std::optional<StartWeights>;
const Own none;
Own taken(double clock, std::uint64_t lineage = 1) {
  return StartWeights{clock, lineage, false};
}
Own resumed(double clock, std::uint64_t lineage = 1) {
  return StartWeights{clock, lineage, true};
}

StartDecision decide(const std::vector<StartView>& nodes, std::size_t self, Duration elapsed = 0ns,
                     const Own& own = none) {
  return decide_start(nodes, self, own, elapsed, {});
}
StartAction action(const std::vector<StartView>& nodes, std::size_t self, Duration elapsed = 0ns,
                   const Own& own = none) {
  return decide(nodes, self, elapsed, own).action;
}

}  // namespace

TEST_CASE("a node alone in its cluster brings its weights and begins at once") {
  CHECK(action({unknown}, 0) == StartAction::bring);
  CHECK(action({unknown}, 0, 0ns, taken(0)) == StartAction::begin);
}

TEST_CASE("the first node brings the weights at once when all others have answered") {
  CHECK(action({unknown, joining, joining}, 0) == StartAction::bring);
}

TEST_CASE("the first node waits for silent nodes, up to half of the limit, before it brings") {
  for (const StartView& silent : {unknown, unreachable}) {
    CHECK(action({unknown, joining, silent}, 0, 0ns) == StartAction::wait);
    CHECK(action({unknown, joining, silent}, 0, 5s - 1ns) == StartAction::wait);
    CHECK(action({unknown, joining, silent}, 0, 5s) == StartAction::bring);
  }
}

TEST_CASE("a node waits for one before it, but not for ever: it may never bring its weights") {
  CHECK(action({joining, unknown, joining}, 1) == StartAction::wait);
  CHECK(action({joining, unknown, unreachable}, 1, 5s) == StartAction::wait);
  CHECK(action({joining, unknown, unreachable}, 1, 7500ms) == StartAction::bring);
  CHECK(action({joining, joining, unknown}, 2, 7500ms) == StartAction::bring);
}

TEST_CASE("nodes behind a first one that never brings weights do so one after the other") {
  const auto brings_at = [](std::size_t self) {
    const std::vector<StartView> nodes(8, joining);
    Duration at = 0ns;
    while (action(nodes, self, at) == StartAction::wait) at += 1ms;
    return at;
  };
  for (std::size_t self = 2; self < 8; ++self) CHECK(brings_at(self) > brings_at(self - 1));
  CHECK(brings_at(7) <= 7500ms);
}

TEST_CASE("a node with the common weights waits until all that answer have them") {
  CHECK(action({unknown, waiting(0), joining}, 0, 0ns, taken(0)) == StartAction::wait);
  CHECK(action({unknown, waiting(0), waiting(0)}, 0, 0ns, taken(0)) == StartAction::begin);
  CHECK(action({unknown, waiting(0), refused}, 0, 0ns, taken(0)) == StartAction::begin);
}

TEST_CASE("neither a silent node nor one that says for ever that it joins is waited for longer") {
  for (const StartView& late : {unknown, unreachable, joining, waiting(0, 9), waiting(-5)}) {
    CHECK(action({unknown, waiting(0), late}, 0, 10s - 1ns, taken(0)) == StartAction::wait);
    CHECK(action({unknown, waiting(0), late}, 0, 10s, taken(0)) == StartAction::begin);
  }
}

TEST_CASE("no node waits when a peer trains") {
  CHECK(action({unknown, ready(7), unreachable, joining}, 0, 0ns, taken(5)) == StartAction::begin);
  CHECK(action({unknown, ready(7), unreachable, joining}, 0) == StartAction::pull_from);
}

TEST_CASE("a node that joined is never waited for, and does not make the others begin") {
  StartView joined = joining;
  joined.joined = true;
  CHECK(action({unknown, waiting(0), joined}, 0, 0ns, taken(0)) == StartAction::begin);
  joined = ready(1e9);
  joined.joined = true;
  CHECK(action({unknown, joining, joined}, 0, 0ns, taken(0)) == StartAction::wait);
}

TEST_CASE("the weights with the higher clock win, at equal clocks those of the smaller lineage") {
  CHECK(action({unknown, waiting(0, 3)}, 0, 0ns, taken(0, 4)) == StartAction::pull_from);
  CHECK(action({unknown, waiting(0, 4)}, 0, 0ns, taken(0, 3)) == StartAction::wait);
  CHECK(action({unknown, waiting(9, 4)}, 0, 0ns, taken(0, 3)) == StartAction::pull_from);
  CHECK(action({unknown, waiting(0, 3)}, 0, 0ns, resumed(9, 4)) == StartAction::wait);
}

TEST_CASE("the weights of one peer are taken over only a few times in a start") {
  StartView fickle = waiting(0, 1);
  fickle.taken_over = 2;
  CHECK(action({unknown, fickle}, 0, 0ns, taken(0, 4)) == StartAction::pull_from);
  fickle.taken_over = 3;
  CHECK(action({unknown, fickle}, 0, 0ns, taken(0, 4)) == StartAction::wait);
  CHECK(action({unknown, fickle}, 0, 10s, taken(0, 4)) == StartAction::begin);
}

TEST_CASE(
    "weights come from a node of the file before one that joined, whatever clock that claims") {
  StartView joined = ready(1e9);
  joined.joined = true;
  CHECK(decide({joined, unknown, ready(5)}, 1).peer == 2);
  CHECK(decide({joined, unknown, waiting(5)}, 1).peer == 2);
  CHECK(decide({joined, unknown, ready(5, 1)}, 1).peer == 0);
  CHECK(decide({joined, unknown, joining}, 1).peer == 0);
}

TEST_CASE("a ready peer that gives nothing is asked after the others, and in the end no more") {
  CHECK(decide({ready(9, 1), unknown, ready(5)}, 1).peer == 2);
  CHECK(decide({ready(9, 1), unknown, ready(5, 2)}, 1).peer == 0);
  CHECK(decide({ready(9, 2), unknown, ready(5, 2)}, 1).peer == 0);
  CHECK(decide({ready(9, 3), unknown, ready(5, 2)}, 1).peer == 2);
  CHECK(action({ready(9, 3), unknown, joining}, 1, 4s) == StartAction::wait);
  CHECK(action({ready(9, 3), unknown, joining}, 1, 5s) == StartAction::bring);
  CHECK(action({ready(9, 3), unknown, joining}, 1, 0s, resumed(4)) == StartAction::wait);
}

TEST_CASE("after the limit no pull is begun any more") {
  CHECK(action({ready(9), unknown}, 1, 20s - 1ns) == StartAction::pull_from);
  CHECK(action({ready(9), unknown}, 1, 20s) == StartAction::bring);
  CHECK(action({ready(9), unknown}, 1, 20s, resumed(1)) == StartAction::begin);
  CHECK(action({waiting(9), unknown}, 1, 20s, taken(0, 2)) == StartAction::begin);
}

TEST_CASE("with the first node dead the next running one brings the weights") {
  CHECK(action({unreachable, unknown, joining}, 1, 4s) == StartAction::wait);
  CHECK(action({unreachable, unknown, joining}, 1, 5s) == StartAction::bring);
  CHECK(action({unreachable, joining, unknown}, 2, 5s) == StartAction::wait);
}

TEST_CASE("a refused node has answered but is no source and no reason to wait") {
  CHECK(action({refused, unknown, joining}, 1) == StartAction::bring);
  CHECK(action({unknown, refused, refused}, 0) == StartAction::bring);
  CHECK(action({refused, unknown}, 1, 0ns, resumed(50)) == StartAction::begin);
}

TEST_CASE("a ready peer is pulled from at once, the one with the highest clock first") {
  const StartDecision decision = decide({unreachable, ready(5), unknown, ready(9), joining}, 2);
  CHECK(decision.action == StartAction::pull_from);
  CHECK(decision.peer == 3);
}

TEST_CASE("one ready peer with a lineage of its own is no source beside two of one lineage") {
  const auto of = [](double clock, std::uint64_t lineage) {
    return StartView{PeerStart::ready, clock, lineage};
  };
  CHECK(decide({unknown, of(9, 1), of(1e6, 2), of(5, 1)}, 0).peer == 1);
  CHECK(decide({unknown, of(9, 1), of(1e6, 2)}, 0).peer == 2);  // one against one
  // This node counts for its own lineage.
  CHECK(action({unknown, of(50, 1), of(1e6, 2)}, 0, 0ns, resumed(50)) == StartAction::begin);
  CHECK(decide({unknown, of(50, 2), of(9, 2)}, 0, 0ns, resumed(60)).peer == 1);
  CHECK(decide({unknown, of(90, 2)}, 0, 0ns, resumed(60)).peer == 1);
  // Names that are not of the file do not, nor does one that gave nothing.
  StartView joined = of(1e6, 2);
  joined.joined = true;
  CHECK(decide({unknown, of(9, 1), of(1e6, 2), joined, joined}, 0).peer == 2);
  CHECK(decide({unknown, of(9, 1), of(5, 1), joined, joined, joined}, 0).peer == 1);
  StartView silent = of(1e6, 2);
  silent.failed_pulls = 3;
  CHECK(decide({unknown, of(9, 1), of(1e6, 2), silent, silent}, 0).peer == 2);
  CHECK(decide({unknown, of(9, 1), of(5, 1), silent, silent, silent}, 0).peer == 1);
}

TEST_CASE(
    "a resumed node does not give up its lineage to fewer nodes, whether those train or not") {
  const StartView other{PeerStart::ready, 4, 2};
  const auto with = [&](const StartView& third, const StartView& fourth, const StartView& fifth,
                        Duration elapsed = 0ns) {
    return action({unknown, other, other, third, fourth, fifth}, 0, elapsed, resumed(300));
  };
  CHECK(with(waiting(300), waiting(300), waiting(300)) == StartAction::begin);
  CHECK(with(waiting(300), waiting(299), unreachable) == StartAction::begin);
  CHECK(with(ready(301), waiting(300), joining) == StartAction::begin);
  // Two against two: the higher clock.
  CHECK(with(waiting(300), unknown, unreachable) == StartAction::begin);
  // The others may be about to answer.
  for (const StartView& late : {unknown, unreachable}) {
    CHECK(with(late, late, late) == StartAction::wait);
    CHECK(with(late, joining, joining, 10s - 1ns) == StartAction::wait);
    CHECK(with(late, late, late, 10s) == StartAction::pull_from);
  }
  CHECK(with(joining, refused, joining) == StartAction::pull_from);
  CHECK(with(waiting(300, 2), waiting(300), joining) == StartAction::pull_from);
  // Nothing is lost by weights that are no older, or where this node has none of a checkpoint.
  const StartView ahead{PeerStart::ready, 301, 2};
  CHECK(action({unknown, ahead, ahead, unknown}, 0, 0ns, resumed(300)) == StartAction::pull_from);
  CHECK(action({unknown, other, other, unknown}, 0, 0ns, taken(300)) == StartAction::pull_from);
  CHECK(action({unknown, other, other, unknown}, 0) == StartAction::pull_from);
}

TEST_CASE("pulls that fail do not make a lone peer of a lineage of its own the source") {
  const StartView liar{PeerStart::ready, 1e6, 9};
  for (const unsigned failed : {0U, 1U, 2U}) {
    CHECK(decide({unknown, liar, ready(10, failed), ready(11, failed)}, 0).peer == 3);
    CHECK(decide({unknown, liar, ready(10), ready(11, failed)}, 0).peer == (failed > 0 ? 2 : 3));
  }
  // Nor do those that succeeded as often as one peer's may.
  StartView used = ready(500);
  used.taken_over = 3;
  CHECK(action({unknown, used, used, liar}, 0, 0ns, taken(10)) == StartAction::begin);
  CHECK(action({unknown, used, used, liar}, 0, 0ns, resumed(10)) == StartAction::begin);
}

TEST_CASE("the first of several ready peers with equal clocks is pulled from") {
  CHECK(decide({unknown, joining, ready(9), ready(9)}, 0).peer == 2);
}

TEST_CASE("a clock that is not finite does not hide a sound one") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(decide({unknown, ready(nan), ready(3), ready(infinity)}, 0).peer == 2);
  CHECK(decide({unknown, ready(nan)}, 0).action == StartAction::pull_from);
}

TEST_CASE("the own entry is ignored whatever it holds") {
  for (const StartView& own : {unknown, unreachable, joining, refused, ready(100), waiting(7)}) {
    CHECK(action({own, joining}, 0) == StartAction::bring);
    CHECK(action({joining, own}, 1, 5s) == StartAction::wait);
    CHECK(decide({own, ready(5)}, 0).peer == 1);
  }
}

TEST_CASE("a resumed node begins on its own weights when no peer is more than one ahead") {
  CHECK(action({unknown, ready(50)}, 0, 0ns, resumed(50)) == StartAction::begin);
  CHECK(action({unknown, ready(51)}, 0, 0ns, resumed(50)) == StartAction::begin);
  CHECK(action({unknown, ready(10), joining}, 0, 0ns, resumed(50)) == StartAction::begin);
}

TEST_CASE("a resumed node that fell behind pulls in full") {
  const StartDecision decision = decide({unknown, ready(40), ready(51.5)}, 0, 0ns, resumed(50));
  CHECK(decision.action == StartAction::pull_from);
  CHECK(decision.peer == 2);
}

TEST_CASE("a resumed node does not follow one that waited with it and has begun since") {
  StartView begun = ready(58);
  begun.together = true;
  CHECK(action({unknown, begun}, 0, 0ns, resumed(50)) == StartAction::begin);
  CHECK(decide({unknown, begun, ready(59)}, 0, 0ns, resumed(50)).peer == 2);
}

TEST_CASE("resumed nodes begin together, whatever their place in the file") {
  CHECK(action({joining, waiting(50), unknown}, 2, 0ns, resumed(50)) == StartAction::wait);
  CHECK(action({waiting(50.5), waiting(50), unknown}, 2, 0ns, resumed(50)) == StartAction::begin);
  CHECK(action({waiting(50), unreachable, unknown}, 2, 9s, resumed(50)) == StartAction::wait);
  CHECK(action({waiting(50), unreachable, unknown}, 2, 10s, resumed(50)) == StartAction::begin);
}

TEST_CASE("the resumed node that is ahead waits until the others have caught up") {
  CHECK(action({unknown, waiting(50)}, 0, 0ns, resumed(80)) == StartAction::wait);
  CHECK(action({waiting(80), unknown}, 1, 0ns, resumed(50)) == StartAction::pull_from);
  CHECK(action({unknown, waiting(80)}, 0, 0ns, resumed(80)) == StartAction::begin);
  CHECK(action({waiting(80), unknown}, 1, 0ns, taken(80)) == StartAction::begin);
}

TEST_CASE("a node that joins never brings weights, and gives up after the wait") {
  StartRuleOptions options;
  options.listing = Listing::joins;
  const std::vector<StartView> nodes{joining, unknown};
  CHECK(decide_start(nodes, 1, none, 10s - 1ns, options).action == StartAction::wait);
  CHECK(decide_start(nodes, 1, none, 10s, options).action == StartAction::give_up);
  CHECK(decide_start({waiting(0), unknown}, 1, none, 0s, options).action == StartAction::pull_from);
  CHECK(decide_start({ready(3), unknown}, 1, none, 20s, options).action == StartAction::give_up);
}

TEST_CASE("with fewer nodes than are demanded a node waits, and then gives up") {
  StartRuleOptions options;
  options.min_nodes = 3;
  const auto at = [&](Duration elapsed, const StartView& third) {
    return decide_start({unknown, waiting(0), third}, 0, taken(0), elapsed, options).action;
  };
  CHECK(at(9s, unreachable) == StartAction::wait);
  CHECK(at(10s, unreachable) == StartAction::give_up);
  CHECK(at(10s, refused) == StartAction::give_up);
  CHECK(at(10s, joining) == StartAction::begin);
  CHECK(at(0s, waiting(0)) == StartAction::begin);
  CHECK(decide_start({unknown, ready(9), unknown}, 0, taken(9), 0s, options).action ==
        StartAction::wait);
}

namespace {

StartAction by_seeds(const std::vector<StartView>& nodes, std::size_t self, Duration elapsed,
                     const Own& own = none) {
  StartRuleOptions options;
  options.listing = Listing::by_seeds;
  return decide_start(nodes, self, own, elapsed, options).action;
}

}  // namespace

TEST_CASE("without a list of nodes one that has found nobody looks around, and then begins") {
  CHECK(by_seeds({unknown}, 0, 5s - 1ns) == StartAction::wait);
  CHECK(by_seeds({unknown}, 0, 5s) == StartAction::bring);
  CHECK(by_seeds({unknown}, 0, 5s, taken(0)) == StartAction::begin);
  CHECK(by_seeds({unknown}, 0, 0ns, resumed(9)) == StartAction::wait);
}

TEST_CASE("without a list of nodes those that have found one another begin at once") {
  CHECK(by_seeds({unknown, joining}, 0, 0ns) == StartAction::bring);
  CHECK(by_seeds({joining, unknown}, 1, 0ns) == StartAction::wait);
  CHECK(by_seeds({waiting(0), unknown}, 1, 0ns) == StartAction::pull_from);
  CHECK(by_seeds({unknown, waiting(0)}, 0, 0ns, taken(0)) == StartAction::begin);
}

TEST_CASE("without a list of nodes the lineage that was trained for longer is taken over") {
  const StartView elder{PeerStart::ready, 500, 4}, younger{PeerStart::ready, 5, 3};
  CHECK(by_seeds({unknown, elder}, 0, 0ns, resumed(100, 3)) == StartAction::pull_from);
  CHECK(by_seeds({unknown, younger, younger}, 0, 0ns, resumed(100, 4)) == StartAction::begin);
  StartRuleOptions options;
  options.listing = Listing::by_seeds;
  CHECK(decide_start({unknown, younger, younger, elder}, 0, none, 0ns, options).peer == 3);
  // Where nobody trains, the higher clock counts as ever.
  CHECK(by_seeds({unknown, waiting(9, 4)}, 0, 0ns, taken(0, 3)) == StartAction::pull_from);
}
