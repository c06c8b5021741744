#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dpwa {

// The outcome of a pull, as the trainer and the metrics see it.
enum class Outcome {
  skipped,      // nothing to blend: no pull drawn, no peer to ask, or none with anything new
  pending,      // a pull is under way and will be blended at a later step
  mixed,        // a peer's parameters were blended in
  timed_out,    // no peer answered in full before the deadline
  unreachable,  // every peer tried refused the connection or broke it
  busy,         // the peers tried had no capacity
  not_ready,    // the peers tried have no parameters yet
  stale,        // the peer lags too far: not blended
  rejected,     // refused: other cluster or model, or unusable parameters
  averaged,     // no pull: the step's gradients are the mean over all nodes
  updated,      // no pull: servers took the step's gradients, and gave the current parameters
  dropped,      // no pull: the others had gone on, and the step's gradients were dropped
};

// In the order of Outcome.
inline constexpr std::array<std::string_view, 12> outcome_names{
    "skipped",   "pending", "mixed",    "timed_out", "unreachable", "busy",
    "not_ready", "stale",   "rejected", "averaged",  "updated",     "dropped"};
static_assert(outcome_names[static_cast<std::size_t>(Outcome::dropped)] == "dropped");

constexpr std::string_view to_string(Outcome outcome) {
  const auto index = static_cast<std::size_t>(outcome);
  return index < outcome_names.size() ? outcome_names[index] : "unknown";
}

// A report but for the name of the peer, as a node process hands it to its trainer.
struct StepNumbers {
  Outcome outcome = Outcome::skipped;
  bool made = true;   // false: told to stop while it waited, it ended before the optimizer's step
  double factor = 0;  // interpolation factor used; 0 unless mixed
  double staleness = 0;  // own clock - peer clock at the blend; negative when the peer is ahead
  // Received for this outcome; of averaged gradients: their size as they travel, once.
  std::uint64_t bytes = 0;
  std::uint64_t sent = 0;             // bytes pushed to servers, as they travelled
  std::chrono::nanoseconds waited{};  // time the step spent waiting for the network
  // The rest of the time since the step before (step_clock.h); 0 where there is no network.
  std::chrono::nanoseconds computed{};
  std::chrono::nanoseconds published{};
  std::chrono::nanoseconds blended{};
  double clock = 0;            // own clock after the step
  unsigned participants = 1;   // nodes whose gradients the step averaged; 1 without an average
  double distance = 0;         // ||x_peer - x_own|| over what was interpolated; 0 unless mixed
  bool clipped = false;        // the factor was cut: the peer was too far away (docs/FIREWALL.md)
  unsigned refused = 0;        // peers whose parameters were not finite, or too far away
  unsigned block = 0;          // which of `blocks` parts of the model was blended; 0 unless mixed
  unsigned blocks = 1;         // parts that the model is blended in
  bool same_host = false;      // blended from the memory of a peer on this host, not over TCP
  std::uint64_t pulls_ok = 0;  // since start()
  std::uint64_t pulls_failed = 0;  // since start(), all kinds of failure
};

// The result of one step, whatever the back end. A missed peer is a normal outcome, never an
// exception. A back end leaves fields that do not apply to it at their defaults
// (docs/COLLECTIVE.md).
struct StepReport : StepNumbers {
  std::string peer;                 // empty when no single peer is concerned
  std::uint64_t skipped_steps = 0;  // by the program, since start(): Adapter::skip_step()
};

// The result of finish().
struct FinishReport {
  bool averaged = false;           // a global average was taken
  std::size_t participants = 1;    // models in it; 0: of a run that had ended, not known any more
  double distance_to_average = 0;  // ||x_own - average|| before it was taken; NaN = not known
  bool enough = true;              // false: fewer participants than the configuration asks for
  // With backend kvstore: the servers did not give the final model of all workers. The own model is
  // that of the last step, and `averaged` is false.
  bool lost_final_model = false;
};

}  // namespace dpwa
