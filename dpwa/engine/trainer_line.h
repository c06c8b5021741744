#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "dpwa/base/event_kind.h"
#include "dpwa/base/time.h"

namespace dpwa {

// A line of the trainer's side for the log; the driver writes it.
struct TrainerLine {
  bool warning = false;  // else information
  std::string text;
  std::string limit{};  // at most one line a minute of this key; empty: not limited
  std::optional<EventKind> event{};
};

// Of a line: "2.5 s".
inline std::string seconds(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", std::chrono::duration<double>(time).count());
  return text;
}

// Of a line: appends to "'w1', 'w2'".
inline void add_name(std::string& names, const std::string& name) {
  names += (names.empty() ? "'" : ", '") + name + "'";
}

}  // namespace dpwa
