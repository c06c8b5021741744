#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::bench {

// The memory passes of a gossip step, written by hand over bare buffers: copy the parameters out
// into one of three snapshot buffers, add a difference to them.
class HandWritten {
 public:
  // Each pass in `threads` equal slices at once.
  HandWritten(std::size_t bytes, int threads);
  ~HandWritten();

  // Microseconds.
  double copy();            // the parameters into the next snapshot
  double copy_and_blend();  // that, then the blend in a pass of its own
  double blend_and_copy();  // both in one pass

 private:
  class Threads;
  using Slice = std::function<void(std::size_t offset, std::size_t bytes)>;
  double timed(const std::function<void()>& work) const;
  void in_slices(const Slice& slice) const;
  void copy_slices();
  AlignedBuffer& next_snapshot();

  const std::size_t bytes_;
  const std::unique_ptr<Threads> threads_;
  AlignedBuffer parameters_;
  AlignedBuffer difference_;
  AlignedBuffer snapshots_[3];
  std::size_t next_ = 0;
};

}  // namespace dpwa::bench
