#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/config/names.h"

namespace dpwa::train {

// The choices of the options, and their words.
enum class DataKind { mnist, cifar10, synthetic };
enum class ModelKind { mlp, cnn, resnet18 };
enum class OptimizerKind { sgd, momentum, adam };
// Course of the learning rate over the whole length: constant; linear: falls to 0; taper: falls to
// half of what it was.
enum class Schedule { constant, linear, taper };
enum class SplitKind { iid, dirichlet, shared };

inline constexpr config::Word<DataKind> data_names[] = {
    {"mnist", DataKind::mnist}, {"cifar10", DataKind::cifar10}, {"synthetic", DataKind::synthetic}};
inline constexpr config::Word<ModelKind> model_names[] = {
    {"mlp", ModelKind::mlp}, {"cnn", ModelKind::cnn}, {"resnet18", ModelKind::resnet18}};
inline constexpr config::Word<OptimizerKind> optimizer_names[] = {
    {"sgd", OptimizerKind::sgd},
    {"momentum", OptimizerKind::momentum},
    {"adam", OptimizerKind::adam}};
inline constexpr config::Word<Schedule> schedule_names[] = {
    {"constant", Schedule::constant}, {"linear", Schedule::linear}, {"taper", Schedule::taper}};

struct Split {
  SplitKind kind = SplitKind::iid;
  double alpha = 0;  // concentration, with dirichlet only; small = few classes per node
};
std::string to_string(const Split& split);  // "iid", "dirichlet:0.1", "shared"

struct DeviceChoice {
  enum class Kind { cpu, cuda, automatic } kind = Kind::cpu;
  int index = -1;  // with cuda; -1 = that of this process, as own_gpu() says
};

// The GPU of the process that is number `local_rank` of this host, of `count` that it sees: one
// each. Processes beyond the last GPU share, from the first one on.
constexpr int own_gpu(int local_rank, int count) {
  return local_rank % count;
}

// Part `index` of the data cut into `of` parts.
struct ShardChoice {
  std::uint64_t index = 0;  // from 0; the command line counts from 1
  std::uint64_t of = 1;
};

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
  std::vector<DeviceChoice> devices;  // several in this process; none: `device`
  std::uint64_t threads = 0;          // of each device; 0 = by the cluster file, compute_threads()
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

constexpr double default_lr(OptimizerKind optimizer) {
  if (optimizer == OptimizerKind::adam) return 0.001;
  return optimizer == OptimizerKind::momentum ? 0.03 : 0.1;
}

// The result of parsing: options to run with, or text to print and an exit code (0: --help,
// --version; 2: wrong usage, one line).
template <class Options>
struct Parsed {
  bool run = false;
  Options options;
  std::string text;
  int exit_code = 0;
};

using ParsedOptions = Parsed<TrainOptions>;
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace dpwa::train
