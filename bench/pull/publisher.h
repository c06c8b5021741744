#pragma once

#include <cstdint>
#include <mutex>

#include "dpwa/net/local_node.h"

namespace dpwa::bench {

// Publishes version after version of one model, whose snapshot buffers are filled once: every
// publish is a new version with checksums of its own, as in training, without the trainer's copy.
// Any thread.
class Publisher {
 public:
  // Fills every buffer of the store with the same values, drawn with `seed`, and publishes.
  Publisher(LocalNode& local, std::uint64_t seed);

  // False when readers hold every other buffer.
  bool publish();

 private:
  Progress next_progress();

  LocalNode& local_;
  std::mutex mutex_;
  std::uint64_t version_ = 0;  // guarded by mutex_
};

}  // namespace dpwa::bench
