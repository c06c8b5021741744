#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/engine/exchange.h"
#include "dpwa/engine/peer_answer.h"
#include "dpwa/engine/trainer_line.h"
#include "dpwa/rules/progress.h"
#include "dpwa/rules/step_report.h"
#include "dpwa/snapshot/byte_range.h"

namespace dpwa {

class ModelPasses;
class GossipNode;
class Parameters;
class Random;
class TrainerState;
struct Config;
struct Greeted;
struct Member;
struct PullSpec;

// The parts of a Gossip that the trainer thread acts on between two steps.
struct TrainerSide {
  const Config& config;
  Parameters& parameters;
  const std::vector<ByteRange>& blocks;
  Random& random;
  TrainerState& state;
  GossipNode& node;
  ModelPasses& passes;
  const TimeSource& now;  // the clock of `state`
  bool& said_not_finite;  // report_unless_finite() has warned since the weights were replaced
  const std::atomic<bool>& broken_off;  // the program waits no more: Gossip::break_off()

  Progress progress() const;     // of now, without version and loss
  bool publish_now(bool final);  // waits for the copy and for a free buffer
  // Warns, once, that the latest snapshot has a tensor that is not finite, with its name.
  void report_unless_finite();
  std::vector<PeerAnswer> greet();  // all peers
  // A whole round outside of the steps; none: it could not begin, or did not end in time.
  std::optional<Arrival> pull(const RoundSpec& round);
  // The round, and how its parameters land.
  PullSpec spec_of(const RoundSpec& round) const;
};

Listing listing_of(const Config& config);  // of the own node
NodePlace place_of(const Config& config);

// The answers of the greeted nodes; `members` is the member table, by place.
std::vector<PeerAnswer> answers_of(const std::vector<Greeted>& greeted,
                                   const std::vector<Member>& members);

// Performs the actions of StartUp until the node may begin (start_driver.cpp). `resumed`: the
// parameters are those of a checkpoint. Throws std::runtime_error with one line when this node
// cannot begin, or is broken off.
void run_start_up(TrainerSide& side, bool resumed, std::uint64_t new_lineage, TimePoint begun);

// Performs the actions of FinalAverage (final_average_driver.cpp).
FinishReport run_final_average(TrainerSide& side);

void log_lines(const std::vector<TrainerLine>& lines);

}  // namespace dpwa
