#include "dpwa/gossip/model_passes.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <utility>

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Kernels that run beside a copy slow it down by up to a third.
constexpr double beside_kernels = 1.5;

std::string in_milliseconds(Duration time) {
  std::array<char, 32> text{};
  const std::chrono::duration<double, std::milli> value(time);
  std::snprintf(text.data(), text.size(), "%.2f ms", value.count());
  return text.data();
}

}  // namespace

ModelPasses::ModelPasses(Parameters& parameters, SnapshotStore& store)
    : parameters_(parameters), store_(store), loss_(std::numeric_limits<double>::quiet_NaN()) {
  copying_.reserve(parameters.copies_at_once());  // no step allocates
}

std::size_t ModelPasses::most_copies(Duration step) {
  if (!copy_time_ || step == Duration::zero()) return 1;
  const bool fits = step > beside_kernels * *copy_time_;
  if (fits != told_fits_ && parameters_.copies_at_once() > 1) {
    told_fits_ = fits;
    const auto held_back = log_limiter_.pass("", SteadyClock::now());
    if (held_back)
      log(LogLevel::info, "gossip",
          "a copy of the parameters takes " + in_milliseconds(*copy_time_) + " of a step of " +
              in_milliseconds(step) + ": publishes " +
              (fits ? "each step" : "every second one where the program is ahead of its device") +
              since_words(*held_back));
  }
  return fits ? parameters_.copies_at_once() : 1;
}

void ModelPasses::open(Duration step) {
  if (copying_.size() >= most_copies(step) || open_) return;
  open_ = store_.begin();
  filled_ = false;
}

void ModelPasses::assign(std::span<const std::byte> snapshot) {
  parameters_.assign(snapshot);
  ++changes_;
}

void ModelPasses::blend(const Landing& landing, double factor) {
  ++changes_;
  if (open_ && !filled_) {
    parameters_.blend_and_copy_out(landing, factor, open_->bytes());
    filled_ = true;
  } else {
    parameters_.blend(landing, factor);
  }
}

void ModelPasses::begin(const std::function<double()>& loss, const Progress& progress) {
  if (!open_) return;
  if (!filled_) parameters_.copy_out(open_->bytes());
  copying_.push_back({*std::exchange(open_, std::nullopt), loss, progress, changes_});
}

bool ModelPasses::complete() {
  if (copying_.empty()) return false;
  const std::size_t unfinished = parameters_.unfinished_copies();
  const bool any = copying_.size() > unfinished;
  while (copying_.size() > unfinished) {
    Copy copy = std::move(copying_.front());
    copying_.erase(copying_.begin());
    loss_ = copy.loss();
    swap_in(std::move(copy));
  }
  return any;
}

bool ModelPasses::publish_now(const Progress& progress, TimePoint give_up) {
  while (SteadyClock::now() < give_up) {
    if (!copying_.empty() && parameters_.settled()) copying_.clear();
    if (copying_.empty() && !open_) open_ = store_.try_begin();
    if (open_) {
      const auto from = SteadyClock::now();
      parameters_.copy_out(open_->bytes());
      while (!parameters_.settled()) std::this_thread::yield();
      copy_time_ = SteadyClock::now() - from;
      swap_in({*std::exchange(open_, std::nullopt), {}, progress, changes_});
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void ModelPasses::swap_in(Copy copy) {
  copy.progress.version = ++version_;
  copy.progress.loss = loss_;
  published_changes_ = copy.changes;
  store_.publish(std::move(copy.writer), copy.progress);
}

}  // namespace dpwa
