#pragma once

#include "examples/train/choices.h"

namespace dpwa::train {

// The learning rate after `done` of the whole length (0 to 1), `rate` at the begin.
constexpr double learning_rate(Schedule schedule, double rate, double done) {
  constexpr double floor = 0.5;  // where a taper ends, as a fraction of the rate
  switch (schedule) {
    case Schedule::linear:
      return rate * (1 - done);
    case Schedule::taper:
      return rate * (1 - (1 - floor) * done);
    case Schedule::constant:
      break;
  }
  return rate;
}

}  // namespace dpwa::train
