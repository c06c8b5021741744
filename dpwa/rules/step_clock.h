#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "dpwa/base/time.h"
#include "dpwa/base/trace.h"
#include "dpwa/rules/step_report.h"

namespace dpwa {

// How the time of the trainer's steps splits up: compute (the program), publish (handing out
// parameters or gradients), blend (taking what came), wait (for the network). Time is an argument.
// Steps and parts go to the trace of the process, too, where a wait is within another part.
// The trainer's thread writes; any thread reads.
class StepClock {
 public:
  enum class Part : std::uint8_t { compute, publish, blend, wait };
  static constexpr std::size_t parts = 4;
  static constexpr std::array<const char*, parts> part_names{"compute", "publish", "blend", "wait"};
  struct Times {
    std::uint64_t steps = 0;
    std::array<Duration, parts> spent{};  // since the first step began
  };

  // From `now` on the time counts to `part`. The first call begins the first step.
  void enter(Part part, TimePoint now) {
    if (entered_ != TimePoint{}) {
      at(part_) += now - entered_;
      trace(part_names[static_cast<std::size_t>(part_)], entered_, now);
    }
    part_ = part;
    entered_ = now;
  }
  // The step of the report is made; `waited` of its time was for the network, whatever part it was
  // counted to. Completes the report.
  void end_step(StepReport& report, TimePoint now) {
    enter(Part::compute, now);
    if (begun_ != TimePoint{}) trace("step", begun_, now);
    begun_ = now;
    Duration waited = report.waited;
    at(Part::wait) += waited;
    for (const Part part : {Part::blend, Part::publish, Part::compute}) {
      const Duration taken = std::min(waited, at(part));
      at(part) -= taken;
      waited -= taken;
    }
    at(Part::wait) -= waited;  // more than there was
    report.computed = at(Part::compute);
    report.published = at(Part::publish);
    report.blended = at(Part::blend);
    for (std::size_t i = 0; i < parts; ++i) {
      total_[i].store(total_[i].load(relaxed) + step_[i].count(), relaxed);
      step_[i] = {};
    }
    steps_.store(steps_.load(relaxed) + 1, relaxed);
  }

  Times times() const {
    Times times{steps_.load(relaxed), {}};
    for (std::size_t i = 0; i < parts; ++i) times.spent[i] = Duration(total_[i].load(relaxed));
    return times;
  }

 private:
  static void trace(const char* name, TimePoint begin, TimePoint end) {
    if (own_trace().is_on()) own_trace().add({Track::trainer, {}, name, begin, end - begin});
  }
  static constexpr auto relaxed = std::memory_order_relaxed;
  Duration& at(Part part) { return step_[static_cast<std::size_t>(part)]; }

  TimePoint begun_{};  // the step under way; none: the first one
  TimePoint entered_{};
  Part part_ = Part::compute;
  std::array<Duration, parts> step_{};  // of the step under way
  std::array<std::atomic<Duration::rep>, parts> total_{};
  std::atomic<std::uint64_t> steps_{0};
};

// Counts the time of its scope to a part, and what follows to compute.
class StepScope {
 public:
  StepScope(StepClock& clock, StepClock::Part part, TimePoint (*now)()) : clock_(clock), now_(now) {
    clock_.enter(part, now_());
  }
  ~StepScope() { clock_.enter(StepClock::Part::compute, now_()); }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  StepClock& clock_;
  TimePoint (*now_)();
};

}  // namespace dpwa
