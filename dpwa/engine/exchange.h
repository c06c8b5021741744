#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/rules/peer_table.h"

namespace dpwa {

// What a node exchanges parameters for, as the rules that follow from it. The pull engine asks for
// these rules and never which exchange it is, so that a further one is a constant more here.
struct Exchange {
  // Which bound on the distance to the own parameters holds.
  enum class Distance {
    none,          // they may be as far away as a number can tell
    usual,         // what is usual among the peers while training
    final_average  // the wider one of the final average
  };

  bool whole_model = false;        // frozen parameters too, and without a codec
  bool for_final_average = false;  // the peer is told that this node has finished training
  bool fresh_only = false;         // a peer that lags or stands still is passed over
  // They are mixed into the own ones: of the same lineage, each version at most once, and only once
  // another peer's distance tells what is usual.
  bool blends = false;
  bool replaces = false;    // they take the place of the own ones
  bool marks_taken = true;  // the version counts as taken from then on
  Distance distance = Distance::usual;
};

// Gossip averaging: a pull from a random peer, blended by an interpolation factor.
inline constexpr Exchange pull_and_blend{.fresh_only = true, .blends = true};
// Everything of one peer, however stale.
inline constexpr Exchange take_over{
    .whole_model = true, .replaces = true, .distance = Exchange::Distance::none};
// Everything of one peer that has finished as well.
inline constexpr Exchange fold_into_average{
    .whole_model = true, .for_final_average = true, .distance = Exchange::Distance::final_average};
// For its distance alone: it may be pulled again afterwards.
inline constexpr Exchange compare_only{.marks_taken = false};

// One round of pulls, as the engine is asked for it.
struct RoundSpec {
  Exchange exchange = pull_and_blend;
  std::optional<PeerId> peer;  // none: the peer table chooses, and tries others after a failure
  // Those that may be chosen, which the topology decides; null: all.
  std::shared_ptr<const std::vector<PeerId>> neighbours;
  std::optional<unsigned> block;  // the index of one block of the model; none: all that is moved
  Duration timeout = std::chrono::milliseconds(500);  // the one deadline of the round
  Duration delay{};  // before the first peer is asked; the timeout begins after it
};

}  // namespace dpwa
