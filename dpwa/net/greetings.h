#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/core/peer_table.h"
#include "dpwa/core/time.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// What one peer said of itself when greeted.
struct Greeted {
  std::optional<PeerFailure> failure;
  std::string detail;
  wire::Welcome welcome;
  std::optional<wire::RejectCode> reject;
  bool quarantined = false;
  bool asked = false;
};

// The answers to one call of Client::greet_all or visit_all. The trainer waits for them; they come
// from the Tx thread, which may lose any of its handlers for want of memory. So nothing is counted:
// each handler and coroutine of the call holds a Work, and the last one that goes, however it goes,
// ends the wait. An answer that comes later than that changes nothing that anybody reads.
class Greetings {
 public:
  explicit Greetings(std::size_t size) : answers_(size) {}

  using Work = std::shared_ptr<Greetings>;
  // Throws std::bad_alloc; the wait is over then.
  static Work begin(const std::shared_ptr<Greetings>& greetings) {
    return Work(greetings.get(), [greetings](Greetings*) { greetings->end(); });
  }

  // Any thread. An index beyond the size is of a peer that came later, and is dropped.
  void put(std::size_t index, Greeted answer) {
    const std::lock_guard lock(mutex_);
    if (index < answers_.size()) answers_[index] = std::move(answer);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // Blocks until the end, and no longer than `bound`.
  std::vector<Greeted> wait(Duration bound) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, bound, [this] { return ended_; });
    return answers_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Greeted> answers_;  // guarded by mutex_
  bool ended_ = false;            // guarded by mutex_
};

}  // namespace dpwa
