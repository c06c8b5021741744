#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/collective/error.h"

namespace dpwa::collective {

// The values that all members sent together with the gradients of one step.
struct StepTally {
  double samples = 0;                // in the batches of all members
  int joined = 0;                    // members that had no batch any more
  int first_stopping = -1;           // the lowest rank that was told to stop; -1: none
  int first_at_work = -1;            // the lowest rank that had one; -1: none
  std::vector<std::uint32_t> notes;  // of each rank: what it told the others (Replica)
  // Of each rank: the checksum of its weights; none: it was not sent.
  std::vector<std::optional<std::uint32_t>> weights;
};

// What one member sends of it.
struct OwnStep {
  double samples = 0;
  bool joined = false;
  bool stopping = false;
  std::uint32_t note = 0;                // below 2^28
  std::optional<std::uint32_t> weights;  // their checksum
};

// The message that goes with the gradients of one step, as numbers of which the members get the
// sums: the samples; for each rank, its flags; for each rank, the checksum of its weights plus 1,
// or 0; for each parameter, how many members used it.
constexpr std::size_t step_words(std::size_t ranks, std::size_t parameters) {
  return 1 + 2 * ranks + parameters;
}
// `words`: zeros. `used`: for each parameter, whether this member's backward pass gave it a
// gradient.
void write_step(std::span<double> words, std::size_t rank, std::size_t ranks, const OwnStep& own,
                const std::vector<bool>& used);
// Of the sums.
StepTally tally_of(std::span<const double> words, std::size_t ranks);
inline bool is_used(std::span<const double> words, std::size_t ranks, std::size_t parameter) {
  return words[step_words(ranks, parameter)] != 0;
}

// What the weights of gradients are divided by before they are summed. In float16 a sum may
// overflow where the mean is far from it; a power of two rounds nothing.
constexpr double sum_share(int members, bool has_float16) {
  return has_float16 ? std::bit_ceil(static_cast<unsigned>(members)) : 1;
}

// How an exchange of gradients has ended at one member.
struct StepResult {
  std::optional<StepTally> tally;
  std::optional<CollectiveError> error;  // where it failed
  std::chrono::nanoseconds waited{};     // of backward() for the network, beyond its own work
  std::uint64_t bytes = 0;               // of gradients that this member sent
};

// The ranks whose weights are not those of most ranks (of the lowest ones, where as many have
// others). Empty: all that were sent are equal. Pure.
std::vector<std::size_t> differing_ranks(const std::vector<std::optional<std::uint32_t>>& weights);

}  // namespace dpwa::collective
