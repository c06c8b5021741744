#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/engine/trainer_line.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/gossip/model_passes.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/node/node.h"
#include "dpwa/rules/progress.h"
#include "dpwa/rules/step_report.h"
#include "dpwa/snapshot/byte_range.h"

namespace dpwa {

// What the trainer thread acts on, between two steps: the parts of a Gossip.
struct TrainerSide {
  const Config& config;
  Parameters& parameters;
  const std::vector<ByteRange>& blocks;
  Random& random;
  TrainerState& state;
  Node& node;
  ModelPasses& passes;
  const TimeSource& now;  // that `state` goes by

  Progress progress() const;     // of now, but for version and loss
  bool publish_now(bool final);  // waits for the copy and for a free buffer
};

// Performs what StartUp asks for, until the node may begin. `resumed`: the parameters are those of
// a checkpoint. Throws std::runtime_error with one line when this node cannot begin.
void run_start_up(TrainerSide& side, bool resumed, std::uint64_t new_lineage, TimePoint begun);

// Performs what FinalAverage asks for. `served_final`: the peers that hold the own final snapshot.
FinishReport run_final_average(TrainerSide& side,
                               const std::function<std::set<std::string>()>& served_final);

void log_lines(const std::vector<TrainerLine>& lines);

}  // namespace dpwa
