#pragma once

#include <functional>
#include <utility>

#include "dpwa/config/place.h"
#include "dpwa/rules/resume_state.h"

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

}  // namespace dpwa
