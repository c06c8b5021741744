#include "dpwa/collective/step_tally.h"

#include <algorithm>

namespace dpwa::collective {
namespace {

// The flags of a rank, as a sum of powers of two: each rank adds to its own place alone.
constexpr int joined_flag = 1;
constexpr int stopping_flag = 2;
constexpr int note_shift = 2;

}  // namespace

void write_step(std::span<double> words, std::size_t rank, std::size_t ranks, const OwnStep& own,
                const std::vector<bool>& used) {
  words[0] = own.samples;
  words[1 + rank] = (own.joined ? joined_flag : 0) | (own.stopping ? stopping_flag : 0) |
                    static_cast<int>(own.note << note_shift);
  if (own.weights) words[1 + ranks + rank] = 1 + static_cast<double>(*own.weights);
  for (std::size_t i = 0; i < used.size(); ++i) words[step_words(ranks, i)] = used[i] ? 1 : 0;
}

StepTally tally_of(std::span<const double> words, std::size_t ranks) {
  StepTally tally;
  tally.samples = words[0];
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto flags = static_cast<int>(words[1 + rank]);
    const bool joined = (flags & joined_flag) != 0;
    tally.joined += joined ? 1 : 0;
    const bool stopping = (flags & stopping_flag) != 0;
    if (stopping && tally.first_stopping < 0) tally.first_stopping = static_cast<int>(rank);
    if (!joined && tally.first_at_work < 0) tally.first_at_work = static_cast<int>(rank);
    tally.notes.push_back(static_cast<std::uint32_t>(flags) >> note_shift);
    const double weights = words[1 + ranks + rank];
    tally.weights.emplace_back();
    if (weights > 0) tally.weights.back() = static_cast<std::uint32_t>(weights - 1);
  }
  return tally;
}

std::vector<std::size_t> differing_ranks(const std::vector<std::optional<std::uint32_t>>& weights) {
  std::optional<std::uint32_t> usual;
  for (const auto& one : weights) {
    const bool more = std::ranges::count(weights, one) > std::ranges::count(weights, usual);
    if (one && (!usual || more)) usual = one;
  }
  std::vector<std::size_t> differing;
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    if (weights[rank] && weights[rank] != usual) differing.push_back(rank);
  }
  return differing;
}

}  // namespace dpwa::collective
