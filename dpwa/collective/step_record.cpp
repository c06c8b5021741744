#include "dpwa/collective/step_record.h"

#include <algorithm>
#include <utility>

namespace dpwa::collective {

void StepRecord::exchanged(const StepResult& result) {
  if (stage_ == Stage::open) stage_ = Stage::exchanged;
  spent_ = spent_ || !result.error;
  report_.waited += result.waited;
  report_.bytes += result.bytes;
  averaged_bytes_ += result.bytes;
}

bool StepRecord::take(const StepTally& tally) {
  const std::size_t size = tally.notes.size();
  notes_ = tally.notes;
  if (tally.first_at_work >= 0) {
    last_at_work_ = tally.first_at_work;
    uneven_ = uneven_ || tally.joined > 0;
  }
  if (size > 1) report_.outcome = Outcome::averaged;
  report_.participants = static_cast<unsigned>(size) - static_cast<unsigned>(tally.joined);
  return tally.first_stopping >= 0 && !std::exchange(all_stop_, true);
}

StepReport StepRecord::end_step(double clock) {
  stage_ = Stage::open;
  spent_ = false;
  report_.clock = clock;
  return std::exchange(report_, {});
}

bool StepRecord::all_have_next_group() {
  const auto notes = std::exchange(notes_, {});
  return !notes.empty() && notes.front() != 0 &&
         std::ranges::all_of(notes, [&](auto note) { return note == notes.front(); });
}

std::optional<int> StepRecord::last_at_work() const {
  return uneven_ ? std::optional(last_at_work_) : std::nullopt;
}

}  // namespace dpwa::collective
