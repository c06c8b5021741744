// The steps of a worker's program: what its pushes state of them, and which ones are over.

#include <algorithm>
#include <variant>

#include "dpwa/kvstore/worker_engine.h"

namespace dpwa::kvstore {

void WorkerEngine::begin_step() {
  step_ = {snapshot_, epochs_.installed().number};
}

void WorkerEngine::reach_barrier() {
  ++barriers_;
  if (options_.own_steps) step_.reset();
  tell_barrier(true);
}

void WorkerEngine::tell_barrier(bool waits) {
  for (const ServerEntry& server : epochs_.installed().servers) {
    outgoing_.push_back({server.id.name, 0, Barrier{epochs_.installed().number, barriers_, waits}});
  }
}

const Push* WorkerEngine::first_push() {
  for (; !pushes_.empty(); pushes_.pop_front()) {
    const auto found = requests_.find(pushes_.front());
    if (found == requests_.end()) continue;
    const Push* push = std::get_if<Push>(&found->second.content);
    DPWA_INVARIANT(push != nullptr, "the pushes under way are pushes", found->first);
    return push;
  }
  return nullptr;
}

// A key that this worker has asked for belongs to the snapshots that it has not heard of by then:
// without the key, it could not go on from them.
std::uint32_t WorkerEngine::past_snapshot() {
  std::uint32_t number = step_ ? step_->snapshot : snapshot_;
  if (const Push* first = first_push()) number = std::min(number, first->snapshot);
  return inits_ == 0 ? number : std::min(number, snapshot_at_init_);
}

// What has been sent has arrived before the beat that says so, or is sent again because the
// connection was lost. It need not be acknowledged: a server that has it knows in which round it
// is.
std::uint64_t WorkerEngine::past_epoch() {
  std::uint64_t number = step_ ? step_->epoch : epochs_.installed().number;
  const Push* first = first_push();
  if (first == nullptr || first->begun_in >= number) return number;
  for (const auto& [tag, request] : requests_) {
    const Push* push = std::get_if<Push>(&request.content);
    if (push != nullptr && request.state == State::queued)
      number = std::min(number, push->begun_in);
  }
  return number;
}

// A program that only pulls, evaluates or waits keeps neither snapshots nor other workers waiting.
void WorkerEngine::end_step_after_pause(TimePoint now) {
  if (!options_.own_steps || !step_) return;
  if (first_push() != nullptr || !pushed_) {
    pushed_ = now;
  } else if (now - *pushed_ >= options_.step_pause) {
    step_.reset();
  }
}

}  // namespace dpwa::kvstore
