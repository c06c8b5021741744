#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/core/time.h"

namespace dpwa {

// What a node that has not made its first step knows of a peer.
enum class PeerStart {
  unknown,      // no answer yet
  unreachable,  // the last try failed
  joining,      // runs, and has no common weights yet either
  ready,        // has common weights: may be pulled from in full
  refused,      // other cluster or model: never a source
};

struct StartView {
  PeerStart state = PeerStart::unknown;
  double clock = 0;           // when ready
  std::uint64_t lineage = 0;  // when ready
  unsigned failed_pulls = 0;  // how often it said that it is ready and then gave nothing
  bool joined = false;        // whoever may join may do so under many names
};

enum class StartAction { wait, pull_from, begin };
struct StartDecision {
  StartAction action = StartAction::wait;
  std::size_t peer = 0;  // node index, with pull_from
};

struct StartRuleOptions {
  Duration wait = std::chrono::seconds(10);  // longest wait for nodes that do not answer
  // Longest wait for a node that comes before this one and says that it joins, in `wait`s: a sound
  // one begins after one.
  int joining_waits = 3;
  unsigned failed_pulls = 3;  // after so many a ready node counts as unreachable
};

// How all nodes come to begin from common weights without a coordinator. `nodes` holds one entry
// per node of the cluster file in file order; the own entry is ignored.
//   - Any peer ready: pull in full from the one with the highest clock among those that failed to
//     deliver least often, those that joined after the others, unless this node was resumed from a
//     checkpoint and that one is not ahead of its clock by more than one: then begin.
//   - Resumed and nobody ready: begin, as every node has weights of its own: at once when every
//     other node has answered, after `wait` when some have not.
//   - Nobody ready: the first node in file order among those that run (this one and the joining
//     ones) is the source of the weights and begins: at once when every other node has answered,
//     after `wait` when some have not. The others wait for it, for `joining_waits`.
// So no peer keeps a node from starting by what it says and does not do. Pure: `elapsed` is the
// time since start() was called.
StartDecision decide_start(const std::vector<StartView>& nodes, std::size_t self,
                           std::optional<double> resumed_clock, Duration elapsed,
                           const StartRuleOptions& options);

}  // namespace dpwa
