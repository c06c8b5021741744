#include "bench/step/hand_written.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstring>
#include <latch>

#include "bench/memory/plain_blend.h"
#include "bench/values.h"

namespace dpwa::bench {
namespace {

constexpr float factor = 0.01F;

}  // namespace

// The calling thread and a pool of the others.
class HandWritten::Threads {
 public:
  explicit Threads(int count) : count_(static_cast<std::size_t>(count)), pool_(count_) {}
  ~Threads() { pool_.join(); }

  template <class Work>
  void run(const Work& work) {
    std::latch others(static_cast<std::ptrdiff_t>(count_) - 1);
    for (std::size_t i = 1; i < count_; ++i) {
      boost::asio::post(pool_, [&work, &others, i] {
        work(i);
        others.count_down();
      });
    }
    work(0);
    others.wait();
  }
  std::size_t count() const { return count_; }

 private:
  const std::size_t count_;
  boost::asio::thread_pool pool_;
};

HandWritten::HandWritten(std::size_t bytes, int threads)
    : bytes_(bytes),
      threads_(std::make_unique<Threads>(threads)),
      parameters_(bytes),
      difference_(bytes),
      snapshots_{AlignedBuffer(bytes), AlignedBuffer(bytes), AlignedBuffer(bytes)} {
  fill_with_values(parameters_.bytes(), 1);
  fill_with_values(difference_.bytes(), 2);
}

HandWritten::~HandWritten() = default;

double HandWritten::timed(const std::function<void()>& work) const {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun)
      .count();
}

void HandWritten::in_slices(const Slice& slice) const {
  const std::size_t unit = (bytes_ / threads_->count() + 4095) / 4096 * 4096;
  threads_->run([&](std::size_t index) {
    const std::size_t from = std::min(index * unit, bytes_);
    const bool last = index + 1 == threads_->count();
    slice(from, last ? bytes_ - from : std::min(unit, bytes_ - from));
  });
}

AlignedBuffer& HandWritten::next_snapshot() {
  return snapshots_[next_++ % 3];
}

void HandWritten::copy_slices() {
  AlignedBuffer& snapshot = next_snapshot();
  in_slices([&](std::size_t at, std::size_t count) {
    std::memcpy(snapshot.bytes().data() + at, parameters_.bytes().data() + at, count);
  });
}

double HandWritten::copy() {
  return timed([this] { copy_slices(); });
}

double HandWritten::copy_and_blend() {
  return timed([this] {
    copy_slices();
    in_slices([this](std::size_t at, std::size_t count) {
      plain_delta(parameters_.bytes().subspan(at, count), difference_.bytes().subspan(at, count),
                  factor);
    });
  });
}

double HandWritten::blend_and_copy() {
  return timed([this] {
    AlignedBuffer& snapshot = next_snapshot();
    in_slices([&](std::size_t at, std::size_t count) {
      plain_delta_and_copy(parameters_.bytes().subspan(at, count),
                           difference_.bytes().subspan(at, count), factor,
                           snapshot.bytes().subspan(at, count));
    });
  });
}

}  // namespace dpwa::bench
