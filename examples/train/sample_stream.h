#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "examples/train/shards.h"

namespace dpwa::train {

// The endless order in which a node takes the samples of its shard: pass after pass, each in an
// order of its own drawn from (seed, pass). A batch may span two passes, so all are full. The
// position is the number of samples taken, and seeking there gives the very same sequence: that
// makes resuming exact. One owner, one thread.
class SampleStream {
 public:
  // `shard` is not empty. `seed` belongs to the node, or to all (dpwa/parallel/seed_streams.h).
  SampleStream(Shard shard, std::uint64_t seed);

  // The next `count` samples; valid until the next call.
  std::span<const std::uint32_t> next(std::size_t count);
  void seek(std::uint64_t position);

  std::uint64_t position() const { return position_; }
  std::uint64_t pass() const { return position_ / shard_.size(); }

 private:
  void shuffle_pass(std::uint64_t pass);

  Shard shard_;
  std::uint64_t seed_;
  std::uint64_t position_ = 0;
  std::uint64_t shuffled_pass_ = 0;
  Shard order_;
  Shard batch_;
};

}  // namespace dpwa::train
