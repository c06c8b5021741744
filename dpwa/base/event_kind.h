#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dpwa {

// What a line of the log tells about the cluster or the run. In events.jsonl, in the status and on
// the pages that show them.
enum class EventKind : std::uint8_t {
  started,      // this process takes part
  ended,        // this process leaves
  joined,       // a process that was not there before
  suspected,    // a process does not answer
  lost,         // a process is gone
  left,         // a process has left in order
  returned,     // a process is back
  admitted,     // a process takes part in the steps
  left_out,     // a process takes part no longer, though it may live
  failed_over,  // the run continues without a server that is gone, or by gossip averaging
  view,         // a new view: who steps together
  taken_over,   // this node has the weights of another one
  quarantined,  // what a process sent must not be used
  checkpoint,   // a checkpoint or snapshot is written
  warning,      // any other line of that level
  error,        // any other line of that level
};

// In the order of EventKind.
inline constexpr std::array<std::string_view, 16> event_names{
    "started",     "ended",      "joined",   "suspected",   "lost", "left",
    "returned",    "admitted",   "left_out", "failed_over", "view", "taken_over",
    "quarantined", "checkpoint", "warning",  "error"};
static_assert(event_names[static_cast<std::size_t>(EventKind::error)] == "error");

constexpr std::string_view to_string(EventKind kind) {
  return event_names.at(static_cast<std::size_t>(kind));
}

}  // namespace dpwa
