#include "dpwa/observe/cluster_poller.h"

#include <chrono>
#include <string>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/time.h"
#include "dpwa/config/names.h"

namespace dpwa::observe {

ClusterPoller::ClusterPoller(Asking asking)
    : asking_(std::move(asking)),
      view_(asking_.config.cluster, std::string(config::name_of(asking_.config.backend))),
      thread_(start_background_thread([this] {
        name_thread("dpwa-poll");
        run_or_end("the thread that asks the nodes", [this] { run(); });
      })) {}

ClusterPoller::~ClusterPoller() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ClusterPoller::run() {
  constexpr auto period = std::chrono::seconds(1);
  // Rates and curves need the moment of the question, by a clock that nobody sets.
  double wall = static_cast<double>(wall_clock_us()) / 1e6;
  TimePoint begun = std::chrono::steady_clock::now();
  while (true) {
    const TimePoint asked = std::chrono::steady_clock::now();
    // Which stands still while the machine sleeps.
    const double real = static_cast<double>(wall_clock_us()) / 1e6;
    if (real - wall - std::chrono::duration<double>(asked - begun).count() > 60) {
      wall = real;
      begun = asked;
    }
    const TimePoint next = asked + period;
    ClusterStatus found = ask_all(asking_);
    MutexLock lock(mutex_);
    view_.add(std::move(found), wall + std::chrono::duration<double>(asked - begun).count());
    while (!stopped_ && changed_.wait_until(lock, next)) {
    }
    if (stopped_) return;
  }
}

}  // namespace dpwa::observe
