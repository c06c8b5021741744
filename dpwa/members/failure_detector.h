#pragma once

#include "dpwa/base/time.h"
#include "dpwa/base/usual_time.h"

namespace dpwa::members {

// What the silence of another process means, learned from the signs of life of all of them: each
// sends one in each `beat`, or later, as machines and lines allow. Pure; time is an argument.
class FailureDetector {
 public:
  struct Options {
    Duration beat{};
    Duration lost_after{};  // given by the user; 0: learned
  };
  explicit FailureDetector(const Options& options) : options_(options) {}

  // Some times in each beat. The result: for how long this process has not run since the last call.
  // That time is nobody's silence.
  Duration look(TimePoint now);
  // Between two signs of life of one process.
  void heard_after(Duration gap) { gaps_.add(gap); }

  // One that is silent for so long, and waited for, is lost: ten times what usually passes between
  // two signs of life, from 2.5 s to 30 s.
  Duration lost_after() const;
  // One that is silent for so long may be: a third of that, from 400 ms to 1 s.
  Duration late_after() const;

 private:
  // Never less: a single beat may be late.
  Duration at_least(int beats, Duration time) const;

  const Options options_;
  UsualTime gaps_;
  TimePoint looked_{};
};

}  // namespace dpwa::members
