#include "examples/train/loss_watch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "dpwa/config/names.h"
#include "dpwa/config/text.h"
#include "examples/train/plan.h"

namespace dpwa::train {
namespace {

constexpr double of_chance = 0.97;  // a mean loss above this share of it has learnt nothing yet

std::string rounded(double value, const char* format = "%.2f") {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), format, value);
  return digits.data();
}

}  // namespace

LossWatch::LossWatch(std::size_t classes, std::uint64_t steps, std::string where_to_look)
    : chance_(std::log(static_cast<double>(classes))),
      block_(std::clamp<std::uint64_t>(steps / 4, 50, 250)),
      where_to_look_(std::move(where_to_look)) {}

std::optional<std::string> LossWatch::see(double loss) {
  sum_ += loss;
  if (++in_block_ < block_) return std::nullopt;
  const double mean = std::exchange(sum_, 0) / static_cast<double>(block_);
  in_block_ = 0;
  if (++blocks_ == 1 || told_ || mean < of_chance * chance_) return std::nullopt;
  told_ = true;
  return "the loss of the last " + std::to_string(block_) + " steps is " + rounded(mean) +
         ", and " + rounded(chance_) + " is that of guessing: nothing is learnt; " + where_to_look_;
}

std::string where_to_look(const TrainOptions& options, const Config& config) {
  const std::string rate = "--lr " + config::number_text(options.lr);
  const std::size_t workers = config.nodes.size();
  if (updates_at_each_push(config) && options.lr_given && workers > 1)
    return rate + ": with kvstore.type " +
           config::name_in(config::kvstore_type_words, config.kvstore.type) + " each of the " +
           std::to_string(workers) + " workers makes whole updates of its own; try " +
           rounded(options.lr / static_cast<double>(workers), "%.2g");
  return rate + ": try a smaller one, and look at the data and its labels";
}

}  // namespace dpwa::train
