// The steps of a worker's program: what its pushes state of them, and which ones are over.

#include <algorithm>
#include <variant>

#include "dpwa/kvstore/worker_engine.h"

namespace dpwa::kvstore {

void WorkerEngine::begin_step() {
  step_ = {snapshot_, epochs_.installed().number};
}

std::uint32_t WorkerEngine::past_snapshot() const {
  std::uint32_t number = step_ ? step_->snapshot : snapshot_;
  for (const auto& [tag, request] : requests_) {
    const Push* push = std::get_if<Push>(&request.content);
    if (push != nullptr) number = std::min(number, push->snapshot);
  }
  return number;
}

// What has been sent has arrived before the beat that says so, or is sent again because the
// connection was lost. It need not be acknowledged: a server that has it knows in which round it
// is.
std::uint64_t WorkerEngine::past_epoch() const {
  std::uint64_t number = step_ ? step_->epoch : epochs_.installed().number;
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
  const bool under_way = std::ranges::any_of(requests_, [](const auto& each) {
    return std::holds_alternative<Push>(each.second.content);
  });
  if (under_way || !pushed_) {
    pushed_ = now;
  } else if (now - *pushed_ >= options_.step_pause) {
    step_.reset();
  }
}

}  // namespace dpwa::kvstore
