#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/measure/statistics.h"
#include "bench/step/steps.h"
#include "bench/worker/child.h"

namespace dpwa::bench {

struct StepMeasured {
  std::uint64_t parameters = 0;
  std::uint64_t tensors = 0;
  std::size_t peers = 0;
  std::string transport;
  int threads = 0;
  StepPlan plan;
  std::vector<StepTimes> steps;
  std::vector<StepTimes> attached_steps;  // of a trainer with a node process; empty: not measured
  std::vector<int> hand_threads;          // of each entry below
  std::vector<HandTimes> hand;
  Noise noise;
};

// How far the times of the hand-written copy differ between parts of the run, although its work is
// the same throughout.
double spread_by_hand(const StepMeasured& measured);

// The JSON document of docs/PERFORMANCE.md.
Json step_document(const StepMeasured& measured);
void print_step(const Json& document, std::ostream& out);

}  // namespace dpwa::bench
