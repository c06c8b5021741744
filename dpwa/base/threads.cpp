#include "dpwa/base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "dpwa/base/thread_failure.h"

namespace dpwa {

std::thread start_background_thread(std::function<void()> body) {
  struct Blocked {
    sigset_t before;
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  };
  const Blocked until_end;
  try {
    return std::thread([body = std::move(body)] { run_or_end("a background thread", body); });
  } catch (const std::system_error& refused) {
    throw std::runtime_error(std::string("cannot start a thread: ") + refused.what() +
                             "; raise the limit of processes (ulimit -u), or pids.max of the "
                             "control group");
  }
}

std::vector<int> usable_processors() {
  std::vector<int> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) processors.push_back(i);
    }
  }
  if (processors.empty()) {  // more processors than a cpu_set_t holds
    const int count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (int i = 0; i < count; ++i) processors.push_back(i);
  }
  return processors;
}

}  // namespace dpwa
