#include "adapters/collective/stepper.h"

#include <algorithm>
#include <utility>

#include "adapters/collective/model_terms.h"
#include "adapters/common/module_tensors.h"

namespace dpwa::collective {
namespace {

// A note has 28 bits; groups are numbered one after the other.
constexpr std::uint64_t group_mask = (1U << 24) - 1;

}  // namespace

void Stepper::set_samples(double samples) {
  samples_ = samples;
  if (reducer_) reducer_->set_samples(samples);
}

void Stepper::set_accumulating(bool on) {
  accumulating_ = on;
  if (reducer_) reducer_->set_accumulating(on);
}

void Stepper::enter(const ProcessGroup& group, std::function<void(const std::string&)> begin_wait,
                    std::function<void()> end_wait) {
  options_.begin_wait = std::move(begin_wait);
  options_.end_wait = std::move(end_wait);
  options_.send_checksums = true;
  reducer_ = std::make_unique<GradientReducer>(trained_parameters(model_), group, options_);
  reducer_->set_shared_buffers(shared_buffers(model_));
  reducer_->set_samples(samples_);
  reducer_->set_accumulating(accumulating_);
  notes_.clear();
}

GradientReducer::Result Stepper::exchange() {
  if (!reducer_->done()) reducer_->contribute(/*joined=*/false);
  return end_exchange();
}

GradientReducer::Result Stepper::repeat() {
  const bool nothing = std::ranges::find(used_, true) == used_.end();
  if (nothing) {
    reducer_->contribute(/*joined=*/false);
  } else {
    reducer_->repeat(used_);
  }
  return end_exchange();
}

GradientReducer::Result Stepper::exchange_joined() {
  reducer_->contribute(/*joined=*/true);
  return end_exchange();
}

GradientReducer::Result Stepper::end_exchange() {
  GradientReducer::Result result = *reducer_->end_step();
  used_ = reducer_->used();
  if (stage_ == Stage::open) stage_ = Stage::exchanged;
  report_.waited += result.waited;
  report_.bytes += result.bytes;
  averaged_bytes_ += result.bytes;
  return result;
}

bool Stepper::take(const StepTally& tally) {
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

StepReport Stepper::end_step(double clock) {
  stage_ = Stage::open;
  report_.clock = clock;
  return std::exchange(report_, {});
}

void Stepper::tell_next_group(std::uint64_t number) {
  reducer_->set_note(static_cast<std::uint32_t>(number & group_mask));
}

bool Stepper::all_have_next_group() {
  const auto notes = std::exchange(notes_, {});
  return !notes.empty() && notes.front() != 0 &&
         std::ranges::all_of(notes, [&](auto note) { return note == notes.front(); });
}

std::optional<int> Stepper::last_at_work() const {
  return uneven_ ? std::optional(last_at_work_) : std::nullopt;
}

}  // namespace dpwa::collective
