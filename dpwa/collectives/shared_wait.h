#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/collectives/lent_memory.h"

namespace dpwa::collectives {

// How the members of one host wait for one another: each writes into its own board alone, looks at
// those of the others, at first again and again, and then sleeps in the kernel (futex) until one of
// them changes. Where members outnumber processors all wait for the first one, which waits for all:
// so few are woken in vain. One thread; break_off() and broken() any thread.
class SharedWait {
 public:
  // `boards` by rank; they outlive it.
  SharedWait(int rank, SharedBoard& own, std::vector<const SharedBoard*> boards,
             std::size_t processors);

  void set_timeout(Duration timeout) { timeout_ = timeout; }

  // This member has reached its next phase, the result: what it wrote before is there for the
  // others to read.
  std::uint64_t arrive();
  // Until all members have reached that phase. Phases in ascending order. Throws GroupBroken.
  void await_all(std::uint64_t phase);

  // The group is of no further use; the others are told. Wakes all that wait.
  void break_off(int lost) noexcept;
  // That member has left in order: who waits for it breaks the group off.
  void left(int rank) noexcept;
  // Whether a member has broken it off.
  bool is_broken() const;
  int lost() const;  // -1: unknown, or none

 private:
  template <class Reached>
  void await(int rank, const Reached& reached);
  template <class Reached>
  bool watch(int rank, const Reached& reached);
  template <class Reached>
  bool let_others_run(const SharedBoard& board, const Reached& reached);
  template <class Reached>
  void sleep(int rank, const Reached& reached);
  void ring();
  [[noreturn]] void fail(const char* what);

  const int rank_;
  SharedBoard& own_;
  const std::vector<const SharedBoard*> boards_;
  const bool crowded_;
  Duration timeout_ = std::chrono::hours(24);
  std::uint64_t phase_ = 0;
  unsigned looks_;               // before it sleeps; learned from whether they were enough
  unsigned sleeps_at_once_ = 0;  // so many waits more
  unsigned without_turns_;       // how many the next time
  std::atomic<bool> broken_ = false;
  std::vector<std::atomic<bool>> left_;  // by rank
};

}  // namespace dpwa::collectives
