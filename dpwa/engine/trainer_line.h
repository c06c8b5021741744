#pragma once

#include <string>

namespace dpwa {

// A line of the trainer's side for the log; the driver writes it.
struct TrainerLine {
  bool warning = false;  // else information
  std::string text;
  std::string limit{};  // at most one line a minute of this key; empty: not limited
};

}  // namespace dpwa
