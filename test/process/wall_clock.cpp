#include "test/process/wall_clock.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<time_t> ahead{0};
static_assert(std::atomic<time_t>::is_always_lock_free);

}  // namespace

namespace dpwa::test {

void move_wall_clock(std::chrono::seconds by) {
  ahead += static_cast<time_t>(by.count());
}

}  // namespace dpwa::test

// In the place of the C library's: the definitions of a program come first.
extern "C" {

int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  const auto result = ::syscall(SYS_clock_gettime, clock, now);
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && wall) now->tv_sec += ahead;
  return static_cast<int>(result);
}

int gettimeofday(struct timeval* now, void*) noexcept {
  struct timespec precise {};
  clock_gettime(CLOCK_REALTIME, &precise);
  *now = {precise.tv_sec, precise.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* result) noexcept {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
