#include "bench/step/hand_written.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstring>
#include <latch>
#include <memory>

#include "bench/memory/plain_blend.h"
#include "bench/serve.h"
#include "bench/values.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::bench {
namespace {

constexpr float factor = 0.01F;

class HandWritten {
 public:
  HandWritten(std::size_t bytes, std::size_t threads)
      : threads_(threads),
        pool_(threads),
        parameters_(bytes),
        difference_(bytes),
        snapshots_{AlignedBuffer(bytes), AlignedBuffer(bytes), AlignedBuffer(bytes)} {
    fill_with_values(parameters_.bytes(), 1);
    fill_with_values(difference_.bytes(), 2);
  }
  ~HandWritten() { pool_.join(); }

  std::array<std::int64_t, 3> run() {
    const auto copied = timed([this] { copy(); });
    const auto separate = timed([this] {
      copy();
      in_slices([this](std::size_t at, std::size_t count) {
        plain_delta(parameters_.bytes().subspan(at, count), difference_.bytes().subspan(at, count),
                    factor);
      });
    });
    const auto fused = timed([this] {
      const auto snapshot = next_snapshot();
      in_slices([&](std::size_t at, std::size_t count) {
        plain_delta_and_copy(parameters_.bytes().subspan(at, count),
                             difference_.bytes().subspan(at, count), factor,
                             snapshot.subspan(at, count));
      });
    });
    return {copied, separate, fused};
  }

 private:
  template <class Work>
  static std::int64_t timed(const Work& work) {
    const auto begun = SteadyClock::now();
    work();
    return nanoseconds_since(begun);
  }

  // In the calling thread and the others of the pool.
  template <class Slice>
  void in_slices(const Slice& slice) {
    const std::size_t bytes = parameters_.bytes().size();
    const std::size_t unit = (bytes / threads_ + 4095) / 4096 * 4096;
    const auto work = [&](std::size_t index) {
      const std::size_t from = std::min(index * unit, bytes);
      const bool last = index + 1 == threads_;
      slice(from, last ? bytes - from : std::min(unit, bytes - from));
    };
    std::latch others(static_cast<std::ptrdiff_t>(threads_) - 1);
    for (std::size_t i = 1; i < threads_; ++i) {
      boost::asio::post(pool_, [&work, &others, i] {
        work(i);
        others.count_down();
      });
    }
    work(0);
    others.wait();
  }

  std::span<std::byte> next_snapshot() { return snapshots_[next_++ % 3].bytes(); }

  void copy() {
    const auto snapshot = next_snapshot();
    in_slices([&](std::size_t at, std::size_t count) {
      std::memcpy(snapshot.data() + at, parameters_.bytes().data() + at, count);
    });
  }

  const std::size_t threads_;
  boost::asio::thread_pool pool_;
  AlignedBuffer parameters_;
  AlignedBuffer difference_;
  AlignedBuffer snapshots_[3];
  std::size_t next_ = 0;
};

}  // namespace

std::function<std::array<std::int64_t, 3>()> hand_written_passes(std::size_t bytes, int threads) {
  const auto passes = std::make_shared<HandWritten>(bytes, static_cast<std::size_t>(threads));
  return [passes] { return passes->run(); };
}

}  // namespace dpwa::bench
