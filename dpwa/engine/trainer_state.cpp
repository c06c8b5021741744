#include "dpwa/engine/trainer_state.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/rules/progress.h"

namespace dpwa {
namespace {

bool is_listed(const Surroundings& others, const std::string& name) {
  return std::ranges::any_of(others.members, [&](const Member& member) {
    return member.listed && member.claim.name == name;
  });
}

// Any of them, so that not all nodes begin with the same.
unsigned first_block(const TrainerOptions& options, Random& random) {
  const std::size_t blocks = options.block_shares.size();
  DPWA_INVARIANT(blocks > 0 && blocks <= max_blocks, "a model has blocks to pull", blocks);
  return static_cast<unsigned>(random.next() % blocks);
}

}  // namespace

TrainerState::TrainerState(TrainerOptions options, GuardedInterpolation interpolation,
                           Random& random)
    : options_(std::move(options)),
      pace_(options_),
      interpolation_(std::move(interpolation)),
      next_block_(first_block(options_, random)),
      pull_moment_(random),
      lineages_(options_.listing, options_.max_members) {}

void TrainerState::replace(double clock, std::uint64_t lineage) {
  clock_ = clock;
  lineage_ = lineage;
}

void TrainerState::restore(double clock, std::uint64_t lineage) {
  replace(clock, lineage);
  lineages_.forget_all();
}

Progress TrainerState::progress() const {
  Progress progress;
  progress.lineage = lineage_;
  progress.clock = clock_;
  return progress;
}

Progress TrainerState::publish() {
  clock_ = clock_after_publish(clock_);
  return progress();
}

// A pull that is spread over the step compares an own snapshot that is at most a usual step old. An
// older one of a peer that was descheduled, evaluates or has ended would hold the mean back. Where
// nodes share a core, their network threads run later than asked, so that nothing would be fresh
// for a step of less than a millisecond.
std::optional<Duration> TrainerState::fresh_for() const {
  const Duration step = step_interval_.get();
  if (!pace_.spread_pulls || step == Duration::zero()) return std::nullopt;
  return std::max(step, least_fresh_for);
}

RoundSpec TrainerState::plan_pull(Random& random) {
  RoundSpec round;
  round.timeout = pace_.timeout;
  // A pull compares the latest snapshot of the peer with our own latest when it is answered. Asked
  // right after a publish, ours would always be fresh and the peer's on average half a step old:
  // every delta would hold the mean back, 0.81 of the nominal learning rate at p = 1, f = 1/2.
  // Asked at any moment of the step alike, both have the same age on average, whatever the nodes'
  // pace.
  if (pace_.spread_pulls) {
    const auto step = static_cast<double>(step_interval_.get().count());
    round.delay = Duration(static_cast<Duration::rep>(pull_moment_.next(random) * step));
  }
  if (adopt_from_)
    return round_with(*std::exchange(adopt_from_, std::nullopt), dpwa::take_over, pace_.timeout);
  if (blocks() > 1) round.block = next_block_;
  return round;
}

void TrainerState::began(const RoundSpec& round) {
  if (round.block) next_block_ = (*round.block + 1) % blocks();
}

bool TrainerState::needs_surroundings(const Arrival& arrival) const {
  return arrival.full || !arrival.other_lineages.empty() || lineages_.full();
}

Absorbed TrainerState::absorb(const Arrival& arrival, const Surroundings& others, TimePoint now) {
  watch_alone(arrival, now);
  hear(arrival.other_lineages, others, now);
  report_.outcome = arrival.outcome;
  report_.peer = arrival.peer_name;
  report_.bytes += arrival.bytes;
  report_.refused += arrival.refused;
  if (arrival.outcome != Outcome::mixed) {
    if (arrival.outcome != Outcome::skipped) ++pulls_failed_;
    return Absorbed::nothing;
  }
  const Progress& peer = arrival.progress;
  report_.staleness = clock_ - peer.clock;
  lineages_.hear(report_.peer, {peer.lineage, peer.clock}, is_listed(others, report_.peer));
  const bool wanted =
      arrival.full ? yields_to(report_.peer, peer, others, now) : peer.lineage == lineage_;
  if (!wanted) {
    report_.outcome = Outcome::rejected;
    ++pulls_failed_;
    if (peer.lineage != lineage_) say_other_lineage(report_.peer, "not blended");
    return Absorbed::refused;
  }
  report_.same_host = arrival.same_host;
  ++pulls_ok_;
  return arrival.full ? Absorbed::adopt : Absorbed::blend;
}

void TrainerState::hear(const std::vector<OtherLineage>& others, const Surroundings& surroundings,
                        TimePoint now) {
  for (const OtherLineage& other : others) {
    lineages_.hear(other.name, {other.progress.lineage, other.progress.clock},
                   is_listed(surroundings, other.name));
  }
  for (const OtherLineage& other : others) {
    const bool yields = !adopt_from_ && yields_to(other.name, other.progress, surroundings, now);
    if (yields) adopt_from_ = other.peer;
    say_other_lineage(other.name, yields ? "taking over its weights" : "not blended");
  }
}

bool TrainerState::yields_to(const std::string& name, const Progress& peer,
                             const Surroundings& others, TimePoint now) {
  return lineages_.yields_to(name, peer, progress(), others, pace_.start_wait, now);
}

double TrainerState::blend(const Arrival& arrival, double own_loss) {
  DPWA_INVARIANT(!blended_, "a step blends once at most", arrival.peer_name);
  DPWA_INVARIANT(arrival.block < blocks(), "what is blended is a block of the model", arrival.block,
                 blocks());
  const double peer_clock = arrival.progress.clock;
  const auto result = interpolation_.factor({clock_, peer_clock, own_loss, arrival.progress.loss});
  // Clipping the difference to the bound is the same as cutting the factor, in either blend.
  const double factor = result.factor * arrival.factor_scale;
  DPWA_INVARIANT(factor >= 0 && factor <= 1, "a factor is a share of the peer's parameters", factor,
                 arrival.factor_scale);
  // A block moves the clock by as much as it moves the model.
  const double moved = factor * options_.block_shares[arrival.block];
  clock_ = options_.by_delta ? clock_after_delta(clock_, peer_clock, arrival.own.clock, moved)
                             : clock_after_lerp(clock_, peer_clock, moved);
  report_.factor = factor;
  report_.clipped = arrival.factor_scale < 1;
  if (report_.clipped && !std::exchange(said_clipped_, true)) {
    lines_.push_back(
        {false, "the parameters of '" + report_.peer +
                    "' are farther away than usual and count in part: clipped, as by "
                    "gossip.firewall.distance (docs/FIREWALL.md); said once, and usual in "
                    "the first seconds"});
  }
  report_.block = arrival.block;
  report_.distance = std::sqrt(arrival.stats.squared_distance);
  blended_ = true;
  return factor;
}

void TrainerState::take_over(const Arrival& arrival, TimePoint now) {
  DPWA_INVARIANT(!blended_, "a step takes weights over once at most", arrival.peer_name);
  replace(arrival.progress.clock, arrival.progress.lineage);
  lineages_.took_over(report_.peer, now);
  lines_.push_back({true,
                    "took over the weights of '" + report_.peer + "' at clock " +
                        std::to_string(clock_) +
                        (options_.listing == Listing::by_seeds
                             ? ": two parts that began apart have met"
                             : ": more nodes of the file descend from these, or they "
                               "have trained for longer"),
                    {},
                    EventKind::taken_over});
  report_.factor = 1;
  blended_ = true;
}

// A pull that reaches no peer ends soon. While no peer answers, the steps report that outcome
// instead of a pull under way.
void TrainerState::watch_alone(const Arrival& arrival, TimePoint now) {
  const bool failed = arrival.outcome != Outcome::mixed && arrival.outcome != Outcome::skipped;
  alone_outcome_ = arrival.alone && failed ? std::optional(arrival.outcome) : std::nullopt;
  if (const auto time = alone_.observe(arrival.alone, now)) {
    const auto seconds = std::chrono::round<std::chrono::seconds>(*time).count();
    lines_.push_back(
        {true, "training alone: no peer has answered for " + std::to_string(seconds) + " s"});
  }
}

void TrainerState::say_other_lineage(const std::string& peer, const std::string& consequence) {
  lines_.push_back({true, "'" + peer + "' descends from other initial weights: " + consequence,
                    peer + ' ' + consequence});
}

StepReport TrainerState::end_step(bool pending, Duration waited) {
  if (report_.outcome == Outcome::skipped && pending)
    report_.outcome = alone_outcome_.value_or(Outcome::pending);
  report_.waited = waited;
  report_.clock = clock_;
  report_.blocks = blocks();
  report_.pulls_ok = pulls_ok_;
  report_.pulls_failed = pulls_failed_;
  blended_ = false;
  return std::exchange(report_, {});
}

std::vector<TrainerLine> TrainerState::take_lines() {
  return std::exchange(lines_, {});
}

}  // namespace dpwa
