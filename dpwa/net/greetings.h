#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// The answer of one peer to a greeting.
struct Greeted {
  std::optional<PeerFailure> failure;
  std::string detail;
  wire::Welcome welcome;
  std::optional<wire::RejectCode> reject;
  bool asked = false;
};

// The answers to one call of Client::greet_all or visit_all. The trainer waits for them. They come
// from the Tx thread, which may stop before all answers are there, so answers are not counted. Each
// handler and coroutine of the call holds a Work, and the wait ends when the last Work is
// destroyed, for whatever reason. A later answer is ignored.
class Greetings {
 public:
  explicit Greetings(std::size_t size) : answers_(size) {}

  using Work = std::shared_ptr<Greetings>;
  // Throws std::bad_alloc; the wait is over then.
  static Work begin(const std::shared_ptr<Greetings>& greetings) {
    return Work(greetings.get(), [greetings](Greetings*) { greetings->end(); });
  }

  // Any thread. An index beyond the size belongs to a peer that joined later: it is ignored.
  void put(std::size_t index, Greeted answer) {
    const MutexLock lock(mutex_);
    if (index < answers_.size()) answers_[index] = std::move(answer);
  }
  void end() {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // Blocks until the end, and no longer than `bound`.
  std::vector<Greeted> wait(Duration bound) {
    MutexLock lock(mutex_);
    const TimePoint until = std::chrono::steady_clock::now() + bound;
    while (!ended_ && changed_.wait_until(lock, until)) {
    }
    return answers_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::vector<Greeted> answers_ DPWA_GUARDED_BY(mutex_);
  bool ended_ DPWA_GUARDED_BY(mutex_) = false;
};

}  // namespace dpwa
