#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "dpwa/config/place.h"

namespace dpwa {

// Held by a training loop while it adds up the gradients of several batches (Adapter::accumulate).
class Accumulation {
 public:
  Accumulation() = default;
  explicit Accumulation(std::function<void()> end) : end_(std::move(end)) {}
  Accumulation(Accumulation&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  Accumulation& operator=(Accumulation&&) = delete;
  ~Accumulation() {
    if (end_) end_();
  }

 private:
  std::function<void()> end_;
};

// The part of a checkpoint that belongs to the back end, besides model and optimizer. One written
// under one back end may be restored under another, which takes the clock and ignores `own`.
struct ResumeState {
  double clock = 0;                          // steps, in the unit of StepReport::clock
  std::map<std::string, std::uint64_t> own;  // of the back end that wrote it, by its own names
};

}  // namespace dpwa
