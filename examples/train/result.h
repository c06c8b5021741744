#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dpwa/config/config.h"
#include "examples/train/run_state.h"
#include "examples/train/step_statistics.h"

namespace dpwa::train {

struct Evaluation {
  double accuracy = 0;  // fraction of the test set
  double loss = 0;      // mean cross-entropy
};

struct AveragedModel {
  std::optional<Evaluation> evaluation;  // none when there was no time for it
  std::uint64_t participants = 1;
  double distance = 0;  // from this node's model to the average
};

// NODE.result.json, which goes to stdout without --run-dir.
struct RunResult {
  RunIdentity identity;
  RunPosition position;
  Backend backend = Backend::null;
  std::optional<Evaluation> own;  // before finish(); none when interrupted before it was done
  std::optional<AveragedModel> averaged;
  StepStatistics::Summary steps;
  double clock = 0;
  bool interrupted = false;
};

// One JSON object and a newline; numbers that are not finite, and absent values, are null.
std::string to_json(const RunResult& result);

}  // namespace dpwa::train
