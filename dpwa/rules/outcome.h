#pragma once

#include <string_view>

namespace dpwa {

// What became of a pull, as the trainer and the metrics see it.
enum class Outcome {
  skipped,      // nothing to blend: no pull drawn, no peer to ask, or none with anything new
  pending,      // a pull is under way and will be blended at a later step
  mixed,        // a peer's parameters were blended in
  timed_out,    // no peer answered in full before the deadline
  unreachable,  // every peer tried refused the connection or broke it
  busy,         // the peers tried had no capacity
  not_ready,    // the peers tried have no parameters yet
  stale,        // the peer lags too far, or its clock stands still: not blended
  rejected,     // refused: other cluster or model, or unusable parameters
  averaged,     // no pull: the step's gradients are the mean over all nodes
};

constexpr std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::skipped:
      return "skipped";
    case Outcome::pending:
      return "pending";
    case Outcome::mixed:
      return "mixed";
    case Outcome::averaged:
      return "averaged";
    case Outcome::timed_out:
      return "timed_out";
    case Outcome::unreachable:
      return "unreachable";
    case Outcome::busy:
      return "busy";
    case Outcome::not_ready:
      return "not_ready";
    case Outcome::stale:
      return "stale";
    case Outcome::rejected:
      return "rejected";
  }
  return "unknown";
}

}  // namespace dpwa
