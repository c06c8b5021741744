#include "dpwa/base/aside.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <list>
#include <memory>
#include <thread>
#include <utility>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"

namespace dpwa {
namespace {

constexpr std::chrono::seconds patience_at_the_end(2);
constexpr std::chrono::milliseconds between_looks(5);

// Never destroyed: static objects of a program may end groups after main().
class Leftovers {
 public:
  // The process ends: later work is waited for at once.
  void end() {
    const MutexLock lock(mutex_);
    ended_ = true;
    wait();
  }

  void run(std::function<void()> work) {
    const MutexLock lock(mutex_);
    threads_.remove_if([](const Aside& aside) { return aside.done->load(); });
    auto done = std::make_shared<std::atomic<bool>>(false);
    threads_.push_back({done, std::jthread([work = std::move(work), done]() mutable {
                          run_or_end("a thread of work whose result is not needed", work);
                          work = nullptr;
                          done->store(true);
                        })});
    name_thread("dpwa-aside", threads_.back().thread.native_handle());
    if (ended_) wait();
  }

 private:
  struct Aside {
    std::shared_ptr<std::atomic<bool>> done;
    std::jthread thread;
  };
  // Work that is stuck, such as in an engine after a lost wake-up, ends with the process.
  void wait() DPWA_REQUIRES(mutex_) {
    const auto until = std::chrono::steady_clock::now() + patience_at_the_end;
    for (Aside& aside : threads_) {
      while (!aside.done->load() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(between_looks);
      if (!aside.done->load()) aside.thread.detach();
    }
    threads_.clear();
  }

  Mutex mutex_;
  bool ended_ DPWA_GUARDED_BY(mutex_) = false;
  std::list<Aside> threads_ DPWA_GUARDED_BY(mutex_);
};

Leftovers& leftovers() {
  static Leftovers& all = *new Leftovers;
  return all;
}

}  // namespace

void finish_aside(std::function<void()> work) {
  [[maybe_unused]] static const int registered = std::atexit([] { leftovers().end(); });
  leftovers().run(std::move(work));
}

}  // namespace dpwa
