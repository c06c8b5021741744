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

// Shares a pass over memory with helper threads, which sleep between two passes. Any free thread
// takes the next piece. The caller never waits for a helper that is late, as on a busy machine, but
// only for pieces that a helper has begun. Nothing is allocated once constructed. One (trainer)
// thread.
class ParallelPass {
 public:
  static constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

  // `threads`: the caller's included; 1 (or 0) starts none.
  explicit ParallelPass(unsigned threads);
  ~ParallelPass();
  ParallelPass(const ParallelPass&) = delete;
  ParallelPass& operator=(const ParallelPass&) = delete;

  std::size_t threads() const { return helpers_.size() + 1; }

  // Calls pass(ByteRange) once for each piece of `bytes`, on any of the threads and in any order;
  // returns when all are done. Pieces begin a multiple of piece_bytes past bytes.offset. With one
  // thread, or no more than one piece, it is a plain call. A pass that throws on a helper ends the
  // program.
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

  void share(const Job& job);
  void help();
  void work() noexcept;

  Job job_;                              // of helpers that are at work, and of the caller
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

// Whether a pass is faster shared among threads or on one, learnt from how long both take: where
// one core fills the memory bus, or the others are busy, sharing costs more than it brings, and no
// size of the model tells. One choice for each kind of pass. Pure: time is an argument.
class SharingChoice {
 public:
  static constexpr unsigned retry_every = 16;  // passes, of which one is done the other way

  // Each way once, then the faster one so far; now and then the other, as things change.
  bool share();
  // Reports the time of the pass, done as share() said.
  void took(double seconds_per_byte);

 private:
  std::array<std::optional<double>, 2> cost_;  // alone, shared; smoothed
  bool shared_ = false;
  unsigned since_retry_ = 0;
};

}  // namespace dpwa
