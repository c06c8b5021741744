#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "examples/train/choices.h"

namespace dpwa::train {

// The command line of dpwa-train as plain values, checked.
struct TrainOptions {
  std::filesystem::path config;
  std::string name;               // empty: from DPWA_NAME
  std::vector<std::string> join;  // HOST:PORT of nodes to join by
  std::uint64_t min_nodes = 0;    // 0 = gossip.min_nodes of the cluster file

  DataKind data = DataKind::mnist;
  std::filesystem::path data_dir;  // default $DPWA_DATA_DIR; not used by synthetic
  Split split;
  std::optional<ShardChoice> shard;  // none: by the place in the cluster file
  ModelKind model = ModelKind::mlp;

  OptimizerKind optimizer = OptimizerKind::momentum;
  double lr = 0;          // as given, or the optimizer's default
  bool lr_given = false;  // else rate_of_workers() may divide it
  Schedule schedule = Schedule::taper;
  std::uint64_t batch_size = 32;
  double epochs = 3;        // of dataset size / nodes samples each, on every node
  std::uint64_t steps = 0;  // 0 = by epochs
  std::uint64_t seed = 1;
  bool seed_given = false;
  std::uint64_t init_seed = 0;  // of the initial weights; `seed` when not given

  DeviceChoice device;
  DevicesChoice devices;  // several in this process; none: `device`
  int threads = 0;        // of each device; 0 = by the cluster file, compute_threads()
  std::chrono::nanoseconds step_time{};  // every step is padded to it; 0 = not

  std::filesystem::path checkpoint;       // directory; empty = none
  std::uint64_t checkpoint_every = 1000;  // steps; 0 = only at the end
  bool resume = false;
  bool reestimate_batch_norm = false;  // of the averaged model

  std::filesystem::path run_dir;       // empty = no files; the result then goes to stdout
  std::filesystem::path save;          // of the final model; empty = none
  std::uint64_t eval_every = 0;        // steps; 0 = only at the end
  std::uint64_t evaluate_threads = 0;  // 0 = the calling thread, with its compute threads
  bool quiet = false;

  bool find_batch = false;          // instead of training
  std::uint64_t memory_budget = 0;  // for it, in bytes; 0 = a share of what is available
};

double default_lr(OptimizerKind optimizer);

// The result of parsing: options to run with, or text to print and an exit code (0: --help,
// --version; 2: wrong usage, one line).
struct ParsedOptions {
  bool run = false;
  TrainOptions options;
  std::string text;
  int exit_code = 0;
};

ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace dpwa::train
