#include "adapters/collective/engine/leftovers.h"

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace dpwa::collective {

namespace {

constexpr std::chrono::seconds patience_at_the_end(2);
constexpr std::chrono::milliseconds between_looks(5);

class Leftovers {
 public:
  // What is stuck in the engine, as after a wake-up that was lost, ends with the process.
  ~Leftovers() {
    const auto until = std::chrono::steady_clock::now() + patience_at_the_end;
    for (Aside& aside : threads_) {
      while (!aside.done->load() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(between_looks);
      if (!aside.done->load()) aside.thread.detach();
    }
  }

  void run(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    threads_.remove_if([](const Aside& aside) { return aside.done->load(); });
    auto done = std::make_shared<std::atomic<bool>>(false);
    threads_.push_back({done, std::jthread([work = std::move(work), done]() mutable {
                          work();
                          work = nullptr;
                          done->store(true);
                        })});
  }

 private:
  struct Aside {
    std::shared_ptr<std::atomic<bool>> done;
    std::jthread thread;
  };
  std::mutex mutex_;
  std::list<Aside> threads_;  // guarded by mutex_
};

}  // namespace

void finish_aside(std::function<void()> work) {
  static Leftovers leftovers;
  leftovers.run(std::move(work));
}

}  // namespace dpwa::collective
