#include "dpwa/engine/start_comparison.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/rules/distance_bound.h"

namespace dpwa {
namespace {

std::string distance_words(double distance, double usual) {
  char text[96];
  std::snprintf(text, sizeof text,
                "these weights are at distance %.3g from most others, where %.3g is usual",
                distance, usual);
  return text;
}

}  // namespace

std::optional<DistanceSurvey::Ask> DistanceSurvey::next(TimePoint now, TimePoint until) {
  while (at_ < peers_.size() || begin_turn()) {
    if (!first_turn_ && taken_ >= samples_) return std::nullopt;
    if (now < until) return Ask{peers_[at_], block_};
    settle(std::nullopt);
  }
  return std::nullopt;
}

bool DistanceSurvey::begin_turn() {
  if (std::exchange(first_turn_, false) && distances_.size() < 3) {
    distances_.clear();
    kept_.clear();
  }
  peers_ = std::exchange(kept_, {});
  at_ = 0;
  return taken_ < samples_ && !peers_.empty();
}

void DistanceSurvey::answer(std::optional<double> squared) {
  DPWA_INVARIANT(block_ < blocks_, "a distance is of a block that was asked for", block_, blocks_);
  if (!squared) return settle(std::nullopt);
  sum_ += *squared;
  if (++block_ == blocks_) settle(std::sqrt(sum_));
}

void DistanceSurvey::settle(std::optional<double> distance) {
  DPWA_INVARIANT(at_ < peers_.size(), "a distance is of a peer that is asked", at_, peers_.size(),
                 block_);
  const PeerId peer = peers_[at_++];
  block_ = 0;
  sum_ = 0;
  if (!first_turn_) {
    ++taken_;
    if (distance) kept_.push_back(peer);
    return;
  }
  if (!distance) return;
  distances_.push_back(*distance);
  if (*distance == 0) return;  // the source of these weights, and it stands still
  ++taken_;
  kept_.push_back(peer);
}

std::optional<double> DistanceSurvey::median() {
  if (distances_.empty()) return std::nullopt;
  return lower_median(distances_);
}

StartComparison::StartComparison(PeerId best, const std::vector<PeerId>& others, Rule rule)
    : best_(best), rule_(rule), stage_(others.empty() ? Stage::take_best : Stage::take_other) {
  DPWA_INVARIANT(others.size() != 1, "weights are compared with those of two others", best);
  if (others.empty()) return;
  witnesses_.push_back(best);
  witnesses_.insert(witnesses_.end(), others.begin(), others.end());
}

std::optional<PeerId> StartComparison::source() const {
  if (result_) return std::nullopt;
  if (stage_ == Stage::take_best) return best_;
  const bool takes = stage_ == Stage::take_other || stage_ == Stage::take_back;
  return takes ? std::optional(witnesses_.back()) : std::nullopt;
}

void StartComparison::measure(Stage stage, std::uint32_t samples) {
  stage_ = stage;
  publishes_ = true;
  survey_.emplace(witnesses_, samples, rule_.blocks);
}

void StartComparison::took_over(TakeOver outcome) {
  const bool taken = outcome == TakeOver::taken;
  switch (stage_) {
    case Stage::take_other:
      took_other_ = taken;
      if (taken) return measure(Stage::measure_other, 0);
      other_failed_ = witnesses_.back();
      stage_ = Stage::take_best;
      return;
    case Stage::take_best:
      if (taken && !witnesses_.empty())
        return measure(Stage::measure_best, DistanceBound::usual_samples);
      // The others' weights are as good, then.
      result_ = took_other_ ? TakeOver::taken : outcome;
      return;
    case Stage::take_back:
      if (taken) return measure(Stage::measure_back, DistanceBound::usual_samples);
      result_ = TakeOver::failed;
      return;
    default:
      DPWA_INVARIANT(!survey_, "weights are taken over while no distance is measured", stage_);
  }
}

void StartComparison::published() {
  DPWA_INVARIANT(publishes_, "what is published was to be", stage_);
  publishes_ = false;
}

void StartComparison::measured(std::optional<double> squared) {
  DPWA_INVARIANT(survey_, "a distance was asked for", stage_);
  survey_->answer(squared);
}

std::optional<DistanceSurvey::Ask> StartComparison::next_distance(TimePoint now) {
  if (!survey_) return std::nullopt;
  const auto ask = survey_->next(now, rule_.until);
  if (!ask) survey_over();
  return ask;
}

void StartComparison::survey_over() {
  const auto distance = survey_->median();
  survey_.reset();
  if (stage_ == Stage::measure_other) {
    usual_ = distance;
    stage_ = Stage::take_best;
    return;
  }
  const bool far = stage_ == Stage::measure_best && usual_ && distance &&
                   !(*distance <= DistanceBound::usual_multiple * *usual_);
  if (!far) {
    result_ = TakeOver::taken;
    return;
  }
  // Others that have not taken a step yet are all alike, and the first that has is away from them.
  line_ = TrainerLine{*usual_ > 0, distance_words(*distance, *usual_)};
  stage_ = Stage::take_back;
}

}  // namespace dpwa
