#include "dpwa/base/background_thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace dpwa {

std::thread start_background_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace dpwa
