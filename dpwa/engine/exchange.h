#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/progress.h"
#include "dpwa/rules/step_report.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa {

// The purpose of an exchange of parameters, as the rules that follow from it. The pull engine reads
// only these rules, never the kind of exchange, so another kind of pull is one more constant here.
// Symmetric pairwise averaging and push-sum change the peer as well: they also need messages, a
// handler on the peer's side, and for push-sum a rule for Progress::weight.
struct Exchange {
  // The bound on the distance to the own parameters that holds.
  enum class Distance {
    none,  // any distance that is a number
    usual  // the usual distance among peers while training
  };

  // What becomes of the parameters that arrive.
  enum class Use {
    // Mixed into the own ones: only those of the same lineage, each version at most once, and not
    // before the usual distance is known from another peer.
    blend,
    replace,  // the own ones
    apart     // kept apart from them
  };

  bool whole_model = false;        // frozen parameters too, and without a codec
  bool for_final_average = false;  // the peer is told that this node has finished training
  bool fresh_only = false;         // a peer that lags is passed over
  bool news_only = false;          // a version that was taken is not sent again
  Use use = Use::apart;
  bool marks_taken = true;  // the version counts as taken from then on
  Distance distance = Distance::usual;

  bool blends() const { return use == Use::blend; }
  bool replaces() const { return use == Use::replace; }
};

// Gossip averaging: a pull from a random peer, blended by an interpolation factor.
inline constexpr Exchange pull_and_blend{
    .fresh_only = true, .news_only = true, .use = Exchange::Use::blend};
// Everything of one peer, however stale.
inline constexpr Exchange take_over{
    .whole_model = true, .use = Exchange::Use::replace, .distance = Exchange::Distance::none};
// Everything of one peer that has finished as well. To read it, for the last time, and to tell it
// that what has been read is enough.
inline constexpr Exchange read_final{.whole_model = true, .distance = Exchange::Distance::none};
inline constexpr Exchange take_final{
    .whole_model = true, .for_final_average = true, .distance = Exchange::Distance::none};
inline constexpr Exchange confirm_final{.for_final_average = true, .news_only = true};
// Only for the distance: the same version may be pulled again afterwards.
inline constexpr Exchange compare_only{.marks_taken = false};

// One round of pulls, as the engine is asked for it.
struct RoundSpec {
  Exchange exchange = pull_and_blend;
  std::optional<PeerId> peer;     // none: the peer table chooses, and tries others after a failure
  std::optional<unsigned> block;  // the index of one block of the model; none: all that is moved
  Duration timeout = PullOptions{}.timeout;  // the one deadline of the round
  Duration delay{};  // before the first peer is asked; the timeout begins after it
};

inline RoundSpec round_with(PeerId peer, const Exchange& exchange, Duration timeout) {
  RoundSpec round;
  round.exchange = exchange;
  round.peer = peer;
  round.timeout = timeout;
  return round;
}

// A peer that was asked for parameters to blend, and that descends from other initial weights.
struct OtherLineage {
  PeerId peer = 0;
  std::string name;
  Progress progress;
};

// The result of a pull. With outcome `mixed` the landing buffer holds the parameters, and belongs
// to the trainer until it begins the next pull.
struct Arrival {
  Outcome outcome = Outcome::skipped;
  std::optional<PeerId> peer;  // that answered, or the last one tried
  std::string peer_name;
  bool full = false;   // of the whole model, frozen parameters too
  unsigned block = 0;  // as in RoundSpec
  Progress progress;   // the peer's
  Progress own;        // of the own snapshot that it was compared with
  kernels::PassStats stats;
  double factor_scale = 1;  // by the firewall, of the factor to blend with; below 1: clipped
  unsigned refused = 0;     // peers whose parameters the firewall kept out before this one
  // The distance to one of them, or to this one, is no number: maybe because of the own model.
  bool incomparable = false;
  std::vector<OtherLineage> other_lineages;  // peers that were passed over for it
  std::uint64_t bytes = 0;
  bool same_host = false;  // it came from the peer's memory
  bool alone = false;      // no peer answers: PeerTable::nobody_answers()
  // From the first peer asked to the last byte landed; the delay not counted.
  Duration took{};
};

}  // namespace dpwa
