#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/rules/listing.h"
#include "dpwa/rules/options.h"

namespace dpwa {

// A peer as a node knows it before its own first step.
enum class PeerStart {
  unknown,      // no answer yet
  unreachable,  // the last try failed
  joining,      // runs, and has no common weights yet either
  waiting,      // has weights to begin with, and has not made a step: may be pulled from in full
  ready,        // trains, or has trained: may be pulled from in full
  refused,      // other cluster or model: never a source
};

constexpr bool is_absent(PeerStart state) {
  return state == PeerStart::unknown || state == PeerStart::unreachable;
}

constexpr bool answered(PeerStart state) {
  return state == PeerStart::joining || state == PeerStart::waiting || state == PeerStart::ready;
}

struct StartView {
  PeerStart state = PeerStart::unknown;
  double clock = 0;           // when waiting or ready
  std::uint64_t lineage = 0;  // when waiting or ready
  unsigned failed_pulls = 0;  // full pulls from it that gave nothing
  unsigned taken_over = 0;    // full pulls from it that succeeded
  bool joined = false;        // not in the cluster file: one process may join under many names
  bool together = false;      // seen in this start before it trained, or found not to run yet
};

// The weights that this node would begin with.
struct StartWeights {
  double clock = 0;
  std::uint64_t lineage = 0;
  bool resumed = false;  // from a checkpoint; else brought or taken over in this start
};

enum class StartAction {
  wait,
  pull_from,  // take over the weights of `peer`; when it trains, then begin at once
  bring,      // the own initial weights are the common ones, under a new lineage
  begin,      // the first step
  give_up,    // fewer than min_nodes nodes started, and the wait is over
};
struct StartDecision {
  StartAction action = StartAction::wait;
  std::size_t peer = 0;  // node index, with pull_from
};

struct StartRuleOptions : StartOptions {
  Duration limit = std::chrono::seconds(20);  // no pull is begun after it
  unsigned failed_pulls = 3;  // after this many failed pulls a node counts as unreachable
  unsigned taken_over = 3;    // after this many takeovers in one start its weights are not taken
  // A node that joins comes for the weights of others, and brings none. By seeds, those that find
  // one another begin; one that has found nobody looks for half of `start_wait`; where a peer
  // trains, the elder of two lineages ranks higher (is_elder() in lineage.h).
  Listing listing = Listing::listed;
};

// How all nodes begin together, from common weights, without a coordinator. `nodes` holds one entry
// per node of the cluster file in file order, then those that joined; the own entry is ignored.
// Nodes that joined are never waited for.
//
// Where a peer trains, nobody waits: this node begins, after it has taken over the weights of the
// peer with the highest clock if its own are more than one behind, or are none, or descend from a
// lineage that ranks lower. Lineages rank as in lineage.h: by the number of nodes of the file that
// have weights and report it (for the own lineage this node counts too), then by clock. So one peer
// that claims a high clock and a lineage of its own is no source beside two others of one lineage,
// not even after pulls from those have failed: these count between lineages of the same number, and
// within one. A resumed node gives up weights of a higher clock only once every other node of the
// file has answered, or `start_wait` is over: others of its lineage may be about to answer. A peer
// that was seen in this start before it trained began together with this node, so a resumed node
// that shares its lineage does not take over from it.
//
// Where nobody trains:
//   - The common weights are those of the highest clock; at equal clocks those of the smallest
//     lineage. A node that has none, or others, or is more than one behind, takes them over.
//   - Nobody has weights: the first node in file order that runs brings its own, at once when
//     every other node of the file has answered, else after half of `start_wait`. Those behind it
//     bring theirs shortly after that, one after the other, in case it never does.
//   - A node begins when every other node of the file has answered and has the common weights, and
//     in any case after `start_wait`.
// So no peer keeps a node from beginning for longer than `start_wait` by what it says and does not
// do, nor for longer than `limit` by full pulls that bring nothing. Pure: `elapsed` is the time
// since start() was called. `own`: none = no common weights yet.
StartDecision decide_start(const std::vector<StartView>& nodes, std::size_t self,
                           const std::optional<StartWeights>& own, Duration elapsed,
                           const StartRuleOptions& options);

// The first moment after `elapsed` at which that decision may change though no node says anything
// new.
Duration next_moment(Duration elapsed, std::size_t nodes, const StartRuleOptions& options);

}  // namespace dpwa
