#include "dpwa/gossip/parallel_pass.h"

#include <algorithm>

#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"

namespace dpwa {

ParallelPass::ParallelPass(unsigned threads) {
  try {
    for (unsigned i = 1; i < threads; ++i)
      helpers_.push_back(start_background_thread([this] { help(); }));
  } catch (...) {  // the system has no more threads
    end();
    throw;
  }
}

void ParallelPass::end() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

void ParallelPass::share(const Job& job) {
  {
    const MutexLock lock(mutex_);
    job_ = job;
    taken_ = 0;
    ++passes_;
    open_ = true;
  }
  wake_.notify_all();
  work();
  MutexLock lock(mutex_);
  open_ = false;
  while (at_work_ > 0) done_.wait(lock);
}

void ParallelPass::help() {
  name_thread("dpwa-pass");
  std::uint64_t seen = 0;
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && (!open_ || passes_ == seen)) wake_.wait(lock);
    if (stopping_) return;
    seen = passes_;
    ++at_work_;
    lock.unlock();
    work();
    lock.lock();
    if (--at_work_ == 0) done_.notify_one();
  }
}

void ParallelPass::work() noexcept {
  while (true) {
    const std::uint64_t begin = taken_.fetch_add(1, std::memory_order_relaxed) * piece_bytes;
    if (begin >= job_.bytes.length) return;
    const std::uint64_t length = std::min(piece_bytes, job_.bytes.length - begin);
    job_.call(job_.pass, {job_.bytes.offset + begin, length});
  }
}

namespace {

constexpr double weight_of_new = 0.25;

}  // namespace

bool SharingChoice::share() {
  if (!cost_[0] || !cost_[1]) {
    shared_ = cost_[0].has_value();
  } else {
    const bool faster = *cost_[1] < *cost_[0];
    const bool retry = ++since_retry_ >= retry_every;
    if (retry) since_retry_ = 0;
    shared_ = retry ? !faster : faster;
  }
  return shared_;
}

void SharingChoice::took(double seconds_per_byte) {
  auto& cost = cost_[shared_ ? 1 : 0];
  cost = cost ? *cost + weight_of_new * (seconds_per_byte - *cost) : seconds_per_byte;
}

}  // namespace dpwa
