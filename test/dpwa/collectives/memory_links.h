#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/threads.h"
#include "dpwa/collectives/links.h"

namespace dpwa::test {

// Links between threads of one process, through queues of bytes. Any thread; lives as long as the
// links.
class MemoryHub {
 public:
  // A stream holds at most `stream_bytes` that were sent and not received, and moves a random
  // number of bytes at a time.
  MemoryHub(int size, std::uint64_t seed, std::size_t stream_bytes = 512);

  std::unique_ptr<collectives::Links> links(int rank);

  // The stream ends after so many bytes, as if its sender had died then. Before links().
  void end_after(int from, int to, std::size_t bytes);

 private:
  class Ends;
  struct Stream {
    std::deque<std::byte> bytes;
    std::optional<std::size_t> left;  // before it ends
  };
  Stream& stream(int from, int to) DPWA_REQUIRES(mutex_) {
    return streams_[static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) +
                    static_cast<std::size_t>(to)];
  }

  const int size_;
  const std::uint64_t seed_;
  const std::size_t stream_bytes_;
  Mutex mutex_;
  Condition changed_;
  std::vector<Stream> streams_ DPWA_GUARDED_BY(mutex_);
  bool broken_ DPWA_GUARDED_BY(mutex_) = false;
  int lost_ DPWA_GUARDED_BY(mutex_) = -1;
};

}  // namespace dpwa::test
