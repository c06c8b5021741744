#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "dpwa/config/config.h"

namespace dpwa {

// A node among those that train together.
struct Place {
  std::size_t rank = 0;  // below size
  std::size_t size = 1;
};

// From the cluster file: the position in `nodes`. A configuration without `self` has one node.
inline Place place_in_file(const Config& config) {
  if (config.self.empty()) return {};
  return {config.self_index(), config.nodes.size()};
}

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
