#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/engine/exchange.h"
#include "dpwa/engine/trainer_line.h"
#include "dpwa/rules/lineage.h"
#include "dpwa/rules/listing.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/progress.h"
#include "dpwa/rules/step_interval.h"
#include "dpwa/rules/step_report.h"
#include "interpolation/guarded.h"

namespace dpwa {

// What a reload of the configuration may change.
struct TrainerPace {
  double pull_probability = PullOptions{}.pull_probability;
  bool spread_pulls = true;  // pulls begin at any moment of the step: no step waits for one
  Duration start_wait{};     // see LineageWatch::yields_to
  Duration timeout = PullOptions{}.timeout;  // of a round of pulls
};

struct TrainerOptions : TrainerPace {
  Listing listing = Listing::listed;  // by seeds: see is_elder()
  bool by_delta = true;               // delta blend; false: lerp
  std::size_t max_members = MembershipOptions{}.max_members;
  // For each block of the model: its share of the exchanged bytes.
  std::vector<double> block_shares{1.0};
};

// The treatment of a pull's result.
enum class Absorbed {
  nothing,  // it brought nothing
  refused,  // it is of another lineage
  blend,    // TrainerState::blend() says by which factor
  adopt,    // take the weights over, then TrainerState::take_over()
};

// One node's decisions in gossip averaging, without I/O: clock and lineage of its weights, which
// pull to begin, how to treat an arrival, and the report of the step. A step is
//   absorb() what has arrived late; step_begins(), publish(), wants_pull() and plan_pull(); the
//   optimizer; unless blended(): absorb() what has arrived by now; end_step().
// The driver owns parameters, snapshots and network. Pure: time and randomness are arguments. One
// owner, one thread.
class TrainerState {
 public:
  TrainerState(TrainerOptions options, GuardedInterpolation interpolation, Random& random);

  void reload(const TrainerPace& pace) { pace_ = pace; }

  // The weights are replaced by others.
  void replace(double clock, std::uint64_t lineage);
  void restore(double clock, std::uint64_t lineage);  // before the start; others are heard anew
  double clock() const { return clock_; }
  std::uint64_t lineage() const { return lineage_; }
  Progress progress() const;  // but for version, loss and time
  LineageWatch& lineages() { return lineages_; }
  const std::vector<double>& block_shares() const { return options_.block_shares; }
  // The factor of every pull, if it is always the same: the accounts of pairs can be kept even.
  std::optional<double> constant_factor() const {
    return options_.by_delta ? interpolation_.constant() : std::nullopt;
  }

  // --- the first half of a step
  void step_begins(TimePoint now) { step_interval_.observe(now); }
  Duration usual_step() const { return step_interval_.get(); }  // zero: unknown
  Progress publish();  // of the snapshot to copy now; advances the clock
  // For how long a published snapshot is as young as the own one of a pull can be; none: for ever.
  std::optional<Duration> fresh_for() const;
  static constexpr Duration least_fresh_for = std::chrono::milliseconds(3);
  bool wants_pull(Random& random) const { return random.bernoulli(pace_.pull_probability); }
  // The round to begin: one block of any peer, or everything of a peer whose weights are to be
  // taken over. The driver begins it as it is.
  RoundSpec plan_pull(Random& random);
  void began(const RoundSpec& round);

  // --- an arrival
  // Whether absorb() needs to know the others; else they may be left empty.
  bool needs_surroundings(const Arrival& arrival) const;
  Absorbed absorb(const Arrival& arrival, const Surroundings& others, TimePoint now);
  // The factor to blend with. `own_loss`: of now. Moves the clock.
  double blend(const Arrival& arrival, double own_loss);
  void take_over(const Arrival& arrival, TimePoint now);  // another lineage, while training

  // --- the second half
  bool blended() const { return blended_; }  // in the step under way
  // `pending`: a pull is under way.
  StepReport end_step(bool pending, Duration waited);

  std::optional<TimePoint> alone_since() const { return alone_.since(); }
  std::vector<TrainerLine> take_lines();

 private:
  void hear(const std::vector<OtherLineage>& others, const Surroundings& surroundings,
            TimePoint now);
  bool yields_to(const std::string& name, const Progress& peer, const Surroundings& others,
                 TimePoint now);
  void watch_alone(const Arrival& arrival, TimePoint now);
  void say_other_lineage(const std::string& peer, const std::string& consequence);
  unsigned blocks() const { return static_cast<unsigned>(options_.block_shares.size()); }

  const TrainerOptions options_;
  TrainerPace pace_;
  GuardedInterpolation interpolation_;

  double clock_ = 0;
  std::uint64_t lineage_ = 0;
  unsigned next_block_;
  StepInterval step_interval_;
  PullMoment pull_moment_;
  std::optional<PeerId> adopt_from_;  // the next pull takes this peer's weights in full
  LineageWatch lineages_;

  StepReport report_;     // of the step under way
  bool blended_ = false;  // in the step under way
  bool said_clipped_ = false;
  std::uint64_t pulls_ok_ = 0;
  std::uint64_t pulls_failed_ = 0;
  AloneWatch alone_;
  std::optional<Outcome> alone_outcome_;  // of the last pull, while no peer answers
  std::vector<TrainerLine> lines_;
};

}  // namespace dpwa
