#include "dpwa/collectives/shared_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/collectives/group.h"

namespace dpwa::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr unsigned fewest_looks = 16;
constexpr unsigned most_looks = 4096;  // some tens of microseconds
// Turns that others get before it sleeps, and how long all of them may take.
constexpr unsigned most_turns = 30;
constexpr auto longest_turns = std::chrono::microseconds(300);
// Waits without any, after those took too long; more each time that they do.
constexpr unsigned fewest_without_turns = 100;
constexpr unsigned most_without_turns = 100'000;
// A sleep that nobody ends: a look at whether the group is still whole.
constexpr timespec longest_sleep{0, 100'000'000};

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Of a word that other processes have mapped. One that only reads it may wait for it, too.
void wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  ::syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), FUTEX_WAIT, value,
            &longest_sleep, nullptr, 0);
}

void wake_all_on(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr,
            nullptr, 0);
}

}  // namespace

SharedWait::SharedWait(int rank, SharedBoard& own, std::vector<const SharedBoard*> boards,
                       std::size_t processors)
    : rank_(rank),
      own_(own),
      boards_(std::move(boards)),
      crowded_(boards_.size() > processors),
      looks_(crowded_ ? fewest_looks : most_looks),
      without_turns_(fewest_without_turns),
      left_(boards_.size()) {
  DPWA_INVARIANT(boards_[static_cast<std::size_t>(rank)] == &own, "a member writes its own board",
                 rank);
}

// Either a member that is about to sleep sees the change, or this one sees that it sleeps.
void SharedWait::ring() {
  own_.bell.fetch_add(1, std::memory_order_seq_cst);
  for (const SharedBoard* board : boards_) {
    if (board == &own_ || board->sleeps.load(std::memory_order_seq_cst) == 0) continue;
    wake_all_on(own_.bell);
    return;
  }
}

std::uint64_t SharedWait::arrive() {
  own_.phase.value.store(++phase_, std::memory_order_release);
  ring();
  return phase_;
}

void SharedWait::await_all(std::uint64_t phase) {
  if (is_broken()) fail("the group is broken");
  const auto size = static_cast<int>(boards_.size());
  const auto has_arrived = [phase](const SharedBoard& board) {
    return board.phase.value.load(std::memory_order_acquire) >= phase;
  };
  if (crowded_ && rank_ != 0) {
    await(0, [phase](const SharedBoard& board) {
      return board.released.value.load(std::memory_order_acquire) >= phase;
    });
    // Each member's own word says that its data is there.
    for (const SharedBoard* board : boards_) {
      if (!has_arrived(*board)) fail("a member has not come where all have");
    }
    return;
  }
  for (int step = 1; step < size; ++step) await((rank_ + step) % size, has_arrived);
  if (!crowded_) return;
  own_.released.value.store(phase, std::memory_order_release);
  ring();
}

template <class Reached>
void SharedWait::await(int rank, const Reached& reached) {
  if (reached(*boards_[static_cast<std::size_t>(rank)])) return;
  if (watch(rank, reached)) {
    looks_ = std::min(crowded_ ? most_looks / 8 : most_looks, looks_ * 2);
    return;
  }
  looks_ = std::max(fewest_looks, looks_ / 2);
  sleep(rank, reached);
}

template <class Reached>
bool SharedWait::watch(int rank, const Reached& reached) {
  const SharedBoard& board = *boards_[static_cast<std::size_t>(rank)];
  for (unsigned look = 0; look < looks_; ++look) {
    pause_processor();
    if (reached(board)) return true;
  }
  return crowded_ && let_others_run(board, reached);
}

// A member that runs next has no need to be woken, which takes tens of microseconds where a
// processor rests. Where other programs are busy, a turn of theirs is far longer than that: then it
// sleeps at once for a while.
template <class Reached>
bool SharedWait::let_others_run(const SharedBoard& board, const Reached& reached) {
  if (sleeps_at_once_ > 0) {
    --sleeps_at_once_;
    return false;
  }
  const auto begun = SteadyClock::now();
  for (unsigned turn = 0; turn < most_turns; ++turn) {
    ::sched_yield();
    if (SteadyClock::now() - begun >= longest_turns) {
      without_turns_ = std::min(most_without_turns, 2 * without_turns_);
      sleeps_at_once_ = without_turns_;
      return reached(board);
    }
    if (reached(board)) return true;
  }
  without_turns_ = fewest_without_turns;
  return false;
}

template <class Reached>
void SharedWait::sleep(int rank, const Reached& reached) {
  const SharedBoard& board = *boards_[static_cast<std::size_t>(rank)];
  const auto until = SteadyClock::now() + timeout_;
  own_.sleeps.store(1, std::memory_order_seq_cst);
  while (true) {
    const std::uint32_t bell = board.bell.load(std::memory_order_seq_cst);
    if (reached(board)) break;
    // What it reached before it left counts.
    const bool has_left = left_[static_cast<std::size_t>(rank)] && !reached(board);
    const bool is_late = SteadyClock::now() >= until;
    if (has_left || is_late || is_broken()) {
      own_.sleeps.store(0, std::memory_order_relaxed);
      fail(has_left  ? "a member has left"
           : is_late ? "the others have not come in time"
                     : "the group is broken");
    }
    wait_on(board.bell, bell);
  }
  own_.sleeps.store(0, std::memory_order_relaxed);
}

void SharedWait::left(int rank) noexcept {
  left_[static_cast<std::size_t>(rank)] = true;
  wake_all_on(boards_[static_cast<std::size_t>(rank)]->bell);
}

void SharedWait::break_off(int lost) noexcept {
  if (broken_.exchange(true)) return;
  own_.broken.store(lost < 0 ? 1 : 2 + static_cast<std::uint32_t>(lost));
  own_.bell.fetch_add(1, std::memory_order_seq_cst);
  // Whoever sleeps does so on one of them; the next look at the boards says why it was woken.
  for (const SharedBoard* board : boards_) wake_all_on(board->bell);
}

bool SharedWait::is_broken() const {
  return broken_ || std::ranges::any_of(boards_, [](const SharedBoard* board) {
           return board->broken.load(std::memory_order_relaxed) != 0;
         });
}

int SharedWait::lost() const {
  for (const SharedBoard* board : boards_) {
    const std::uint32_t broken = board->broken.load();
    if (broken >= 2 && broken - 2 < boards_.size()) return static_cast<int>(broken - 2);
  }
  return -1;
}

void SharedWait::fail(const char* what) {
  const int known = lost();
  break_off(known);
  throw GroupBroken(known, what);
}

}  // namespace dpwa::collectives
