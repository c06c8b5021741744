#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/snapshot/byte_range.h"

namespace dpwa {

// Shares a pass over memory with helper threads, which sleep between passes. Any free thread takes
// the next piece. The caller waits only for pieces that a helper has begun, never for a helper that
// wakes late on a busy machine. Allocates nothing after construction. One (trainer) thread.
class ParallelPass {
 public:
  static constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

  // `threads`: the caller's included; 1 (or 0) starts none.
  explicit ParallelPass(unsigned threads);  // throws where the system has no more threads
  ~ParallelPass() { end(); }
  ParallelPass(const ParallelPass&) = delete;
  ParallelPass& operator=(const ParallelPass&) = delete;

  std::size_t threads() const { return helpers_.size() + 1; }

  // Calls pass(ByteRange) once for each piece of `bytes`, on any of the threads and in any order.
  // Returns when all pieces are done. Pieces begin at bytes.offset plus multiples of piece_bytes.
  // With one thread, or at most one piece, it is a plain call. A pass that throws on a helper ends
  // the program.
  template <class Pass>
  void run(ByteRange bytes, const Pass& pass) {
    if (helpers_.empty() || bytes.length <= piece_bytes) return pass(bytes);
    share({bytes, &pass, [](const void* shared, ByteRange piece) {
             (*static_cast<const Pass*>(shared))(piece);
           }});
  }

 private:
  struct Job {
    ByteRange bytes;
    const void* pass = nullptr;
    void (*call)(const void* pass, ByteRange piece) = nullptr;
  };

  void end();
  void share(const Job& job);
  void help();
  void work() noexcept;

  Job job_;                              // of the helpers at work and the caller
  std::atomic<std::uint64_t> taken_{0};  // pieces of it

  Mutex mutex_;
  Condition wake_;
  Condition done_;
  std::uint64_t passes_ DPWA_GUARDED_BY(mutex_) = 0;  // begun so far
  bool open_ DPWA_GUARDED_BY(mutex_) = false;         // helpers may still join in
  std::size_t at_work_ DPWA_GUARDED_BY(mutex_) = 0;   // helpers
  bool stopping_ DPWA_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> helpers_;
};

// Learns from their times whether a pass is faster on several threads or on one. Where one core
// fills the memory bus, or the other cores are busy, sharing costs more time than it saves; the
// size of the model does not show this. One choice for each kind of pass. Pure: time is an
// argument.
class SharingChoice {
 public:
  static constexpr unsigned retry_every = 16;  // one pass in so many uses the slower way

  // First each way once, then the way that was faster so far; now and then the other way, because
  // conditions change.
  bool share();
  // Reports the time of a pass that was done as share() returned.
  void took(double seconds_per_byte);

 private:
  std::array<std::optional<double>, 2> cost_;  // alone, shared; smoothed
  bool shared_ = false;
  unsigned since_retry_ = 0;
};

}  // namespace dpwa
