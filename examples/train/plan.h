#pragma once

#include <cstdint>

#include "dpwa/config/config.h"
#include "examples/train/dataset.h"
#include "examples/train/options.h"
#include "examples/train/run_state.h"

namespace dpwa::train {

// What follows from the options, the cluster file and the data before a run begins.
RunIdentity identify(const TrainOptions& options, const Config& config, const Dataset& train);

// The samples that this node takes in the whole run.
std::uint64_t total_samples(const TrainOptions& options, const RunIdentity& identity);

// As asked for, else one per core of the node in the cluster file; 0 = LibTorch's choice.
int compute_threads(const TrainOptions& options, const Config& config);

}  // namespace dpwa::train
