#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/engine/trainer_line.h"
#include "dpwa/rules/peer_table.h"

namespace dpwa {

// Measures how far the own weights are from those of some peers. Their parameters are pulled for
// this purpose, block by block, and not blended. Each distance enters the firewall's window, so
// that the usual distance is known before the first step. Each peer is asked once, then again in
// turn until there are `samples` distances; peers that do not answer are left out. Pure.
class DistanceSurvey {
 public:
  struct Ask {
    PeerId peer = 0;
    unsigned block = 0;
  };
  DistanceSurvey(std::vector<PeerId> peers, std::uint32_t samples, unsigned blocks)
      : peers_(std::move(peers)), samples_(samples), blocks_(blocks) {}

  // The peer and block to ask for next; none: the survey is over. No peer is asked from `until` on.
  std::optional<Ask> next(TimePoint now, TimePoint until);
  // Reports the squared distance in that block; none: the peer gave nothing comparable.
  void answer(std::optional<double> squared);
  // The lower median of the distances, one per peer; none: fewer than three peers answered (one of
  // them may be the source of the own weights).
  std::optional<double> median();

 private:
  bool begin_turn();
  void settle(std::optional<double> distance);

  std::vector<PeerId> peers_;  // of this turn
  const std::uint32_t samples_;
  const unsigned blocks_;
  bool first_turn_ = true;
  std::vector<PeerId> kept_;  // for the next turn
  std::uint32_t taken_ = 0;
  std::size_t at_ = 0;
  unsigned block_ = 0;
  double sum_ = 0;  // of the squares, over the blocks before this one
  std::vector<double> distances_;
};

// The result of an attempt to take over a peer's weights.
enum class TakeOver { taken, failed, busy };

// A node takes over the weights of the peer with the highest clock, unless they are farther from
// most other models than those models are from one another. To learn the usual distance, it first
// takes over the weights of another peer. Without witnesses nothing is compared. Pure: events in,
// actions out.
class StartComparison {
 public:
  struct Rule {
    unsigned blocks = 1;  // that the model is pulled in
    TimePoint until{};    // no distance is asked for after it
  };
  // `others`: at least two more peers with weights of the same lineage; empty: too few to compare.
  StartComparison(PeerId best, const std::vector<PeerId>& others, Rule rule);

  // --- what to do next
  // Take over the weights of this peer.
  std::optional<PeerId> source() const;
  // Publish the own weights, which pulls are compared with.
  bool publishes() const { return publishes_; }
  // Pull this block of this peer and compare it; none: the distances are known.
  std::optional<DistanceSurvey::Ask> next_distance(TimePoint now);
  // The result, once all is done.
  std::optional<TakeOver> result() const { return result_; }

  // --- what came of it
  void took_over(TakeOver outcome);
  void published();
  void measured(std::optional<double> squared);
  // Another peer than the best one, that just gave no weights.
  std::optional<PeerId> take_other_failed() { return std::exchange(other_failed_, std::nullopt); }
  std::optional<TrainerLine> take_line() { return std::exchange(line_, std::nullopt); }

 private:
  enum class Stage { take_other, measure_other, take_best, measure_best, take_back, measure_back };

  void measure(Stage stage, std::uint32_t samples);
  void survey_over();

  const PeerId best_;
  std::vector<PeerId> witnesses_;  // the best one first; empty: nothing is compared
  const Rule rule_;
  Stage stage_;
  bool publishes_ = false;
  std::optional<DistanceSurvey> survey_;
  std::optional<double> usual_;
  bool took_other_ = false;
  std::optional<PeerId> other_failed_;
  std::optional<TakeOver> result_;
  std::optional<TrainerLine> line_;
};

}  // namespace dpwa
