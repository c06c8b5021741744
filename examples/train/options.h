#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "examples/train/choices.h"

namespace dpwa::train {

// The command line of dpwa-train as plain values, checked.
struct TrainOptions {
  std::filesystem::path config;
  std::string name;               // empty: from DPWA_NAME
  std::vector<std::string> join;  // HOST:PORT of nodes to join by

  DataKind data = DataKind::mnist;
  std::filesystem::path data_dir;  // default $DPWA_DATA_DIR; not used by synthetic
  Split split;
  ModelKind model = ModelKind::mlp;

  OptimizerKind optimizer = OptimizerKind::momentum;
  double lr = 0;  // as given, or the optimizer's default
  Schedule schedule = Schedule::taper;
  std::uint64_t batch_size = 32;
  double epochs = 3;        // of dataset size / nodes samples each, on every node
  std::uint64_t steps = 0;  // 0 = by epochs
  std::uint64_t seed = 1;
  std::uint64_t init_seed = 0;  // of the initial weights; `seed` when not given

  DeviceChoice device;
  int threads = 0;  // 0 = one per core of the node in the cluster file, else LibTorch's choice
  std::chrono::nanoseconds step_time{};  // every step is padded to it; 0 = not

  std::filesystem::path checkpoint;       // directory; empty = none
  std::uint64_t checkpoint_every = 1000;  // steps; 0 = only at the end
  bool resume = false;

  std::filesystem::path run_dir;  // empty = no files; the result then goes to stdout
  std::uint64_t eval_every = 0;   // steps; 0 = only at the end
  bool quiet = false;
};

double default_lr(OptimizerKind optimizer);

// What parsing came to: options to run with, or text to print and an exit code (0: --help,
// --version; 2: wrong usage, one line).
struct ParsedOptions {
  bool run = false;
  TrainOptions options;
  std::string text;
  int exit_code = 0;
};

ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace dpwa::train
