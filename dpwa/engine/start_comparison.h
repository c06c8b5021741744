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

// How far the own weights are from those of some peers, whose parameters are pulled for that, block
// by block, and not blended. Each distance goes into the firewall's window, which so knows what is
// usual before the first step. Each peer is asked once, and then in turn until there are `samples`
// distances; those that do not answer are left out. Pure.
class DistanceSurvey {
 public:
  struct Ask {
    PeerId peer = 0;
    unsigned block = 0;
  };
  DistanceSurvey(std::vector<PeerId> peers, std::uint32_t samples, unsigned blocks)
      : peers_(std::move(peers)), samples_(samples), blocks_(blocks) {}

  // Whom to ask next; none: the survey is over. Nobody is asked from `until` on.
  std::optional<Ask> next(TimePoint now, TimePoint until);
  // The squared distance in that block; none: the peer gave nothing that could be compared.
  void answer(std::optional<double> squared);
  // The lower median of one distance a peer; none: fewer than three peers answered, of which one
  // may be the source of the own weights.
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

// What became of a try to take over a peer's weights.
enum class TakeOver { taken, failed, busy };

// A node takes over the weights of the peer that is ahead, unless they are farther from most other
// models than those are from one another: the weights of another peer, taken over first, tell what
// is usual. Without witnesses nothing is compared. Pure: events in, actions out.
class StartComparison {
 public:
  struct Rule {
    unsigned blocks = 1;  // that the model is pulled in
    std::uint32_t samples = 8;
    double multiple = 2;  // of what is usual, that is still near enough
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
  void published() { publishes_ = false; }
  void measured(std::optional<double> squared) { survey_->answer(squared); }
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
