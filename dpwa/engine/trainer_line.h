#pragma once

#include <string>

namespace dpwa {

// A line that the trainer's side has for the log, written by whoever drives it.
struct TrainerLine {
  bool warning = false;  // else information
  std::string text;
  std::string limit{};  // at most one line a minute of this key; empty: not limited
};

}  // namespace dpwa
