#pragma once

#include <algorithm>

#include "examples/train/choices.h"

namespace dpwa::train {

// The learning rate after `done` of the whole length (0 to 1), `rate` at the begin.
constexpr double learning_rate(Schedule schedule, double rate, double done) {
  constexpr double cooldown = 0.2;  // of the length
  switch (schedule) {
    case Schedule::linear:
      return rate * (1 - done);
    case Schedule::cooldown:
      return rate * std::min(1.0, (1 - done) / cooldown);
    case Schedule::constant:
      break;
  }
  return rate;
}

}  // namespace dpwa::train
