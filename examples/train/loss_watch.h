#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dpwa/config/config.h"
#include "examples/train/options.h"

namespace dpwa::train {

// Finds a run that learns nothing: its loss stays at or above that of guessing, the logarithm of
// the number of classes. Compares means over blocks of a quarter of the run, at least 50 steps and
// at most 250. The first block may be there. One owner.
class LossWatch {
 public:
  LossWatch(std::size_t classes, std::uint64_t steps, std::string where_to_look);

  // The loss of the next step. A line, once in a run, when a block stayed at chance.
  std::optional<std::string> see(double loss);

 private:
  const double chance_;
  const std::uint64_t block_;
  const std::string where_to_look_;
  std::uint64_t in_block_ = 0;
  std::uint64_t blocks_ = 0;
  double sum_ = 0;
  bool told_ = false;
};

// The settings to look at when the loss stays at chance or is not finite.
std::string where_to_look(const TrainOptions& options, const Config& config);

}  // namespace dpwa::train
