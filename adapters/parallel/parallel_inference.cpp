#include "adapters/parallel/parallel_inference.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "adapters/common/training_state.h"
#include "dpwa/base/on_exit.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"

namespace dpwa {
namespace {

// Hands out the parts; ends at the first failure. Any thread.
class Parts {
 public:
  Parts(std::size_t count, const std::function<bool(std::size_t)>& go_on)
      : count_(count), go_on_(go_on) {}

  // Processes one part after the other until none is left or a thread has failed.
  void work_off(const std::function<void(std::size_t)>& work) {
    const c10::InferenceMode inference;
    MutexLock lock(mutex_);
    while (next_ < count_ && !stopped_) {
      const std::size_t part = next_++;
      lock.unlock();
      std::exception_ptr failure;
      try {
        work(part);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      try {
        if (!failure && !go_on_(++done_)) stopped_ = true;
      } catch (...) {
        failure = std::current_exception();
      }
      if (!failure) continue;
      stopped_ = true;
      if (!failure_) failure_ = failure;
    }
  }

  bool finish() const {
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    return done_ == count_;
  }
  void stop() {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  Mutex& mutex() { return mutex_; }

 private:
  const std::size_t count_;
  const std::function<bool(std::size_t)>& go_on_;
  mutable Mutex mutex_;
  std::size_t next_ DPWA_GUARDED_BY(mutex_) = 0;
  std::size_t done_ DPWA_GUARDED_BY(mutex_) = 0;
  bool stopped_ DPWA_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace

bool infer_parts(torch::nn::Module& module, std::size_t parts,
                 const std::function<void(std::size_t part)>& work,
                 const InferenceOptions& options) {
  const EvaluationMode evaluation(module);
  Parts waiting(parts, options.go_on);
  if (options.threads == 0) {
    waiting.work_off(work);
    return waiting.finish();
  }
  // Setting the number of compute threads sets that of the process and that of the thread.
  const int compute_threads = at::get_num_threads();
  {
    std::vector<std::thread> threads;
    const OnExit over([&] {
      for (std::thread& thread : threads) thread.join();
      at::set_num_threads(compute_threads);
    });
    const auto work_alone = [&] {
      {
        const MutexLock lock(waiting.mutex());
        at::set_num_threads(1);
      }
      waiting.work_off(work);
    };
    try {
      for (std::size_t i = 0; i < std::min(options.threads, parts); ++i) {
        threads.push_back(start_background_thread(work_alone));
        name_thread("dpwa-inference", threads.back().native_handle());
      }
    } catch (...) {
      waiting.stop();
      throw;
    }
  }
  return waiting.finish();
}

at::Tensor infer_rows(torch::nn::Module& module, const at::Tensor& inputs, std::int64_t batch_size,
                      const std::function<at::Tensor(const at::Tensor& batch)>& forward,
                      const InferenceOptions& options) {
  const std::int64_t rows = inputs.size(0);
  const std::int64_t parts = (rows + batch_size - 1) / batch_size;
  std::vector<at::Tensor> outputs(static_cast<std::size_t>(parts));
  const auto work = [&](std::size_t part) {
    const std::int64_t from = static_cast<std::int64_t>(part) * batch_size;
    outputs[part] = forward(inputs.narrow(0, from, std::min(batch_size, rows - from)));
  };
  if (!infer_parts(module, outputs.size(), work, options)) return {};
  const c10::InferenceMode inference;
  return at::cat(outputs);
}

}  // namespace dpwa
