#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/parallel/seed_streams.h"
#include "dpwa/parallel/shares.h"
#include "examples/train/data_sets.h"
#include "examples/train/options.h"
#include "examples/train/run_state.h"

namespace dpwa::train {

// Whether all nodes make their steps together, with one learning rate.
bool step_together(const Config& config);

// Whether each push of a worker is an update of its own: n workers then move the weights n times.
bool updates_at_each_push(const Config& config);

// The default learning rate divided by the number of workers, with a line for the log. None where
// a rate was given, or where not each push is an update.
struct RateOfWorkers {
  double lr = 0;
  std::string words;
};
std::optional<RateOfWorkers> rate_of_workers(const TrainOptions& options, const Config& config);

// The settings to look at when the loss stays at chance or is not finite.
std::string where_to_look(const TrainOptions& options, const Config& config);

// A number for people, with two decimals or as `format` says.
std::string rounded(double value, const char* format = "%.2f");

// Throws ConfigError when the options or the file ask for other nodes in a way that this run does
// not support.
void check_company(const TrainOptions& options, const Config& config);

// Throws ConfigError when the data set needs files and no option names their folder.
void require_data_directory(const TrainOptions& options);

// Where a run ends. With data of its own: after the samples that this node takes. With shared data:
// --epochs counts the samples of all nodes, --steps the steps, whatever the number of nodes.
struct RunLength {
  std::uint64_t samples = SharedCursor::no_end;
  std::uint64_t steps = SharedCursor::no_end;

  // The number of steps with `nodes` nodes.
  std::uint64_t steps_of(std::uint64_t batch_size, std::uint64_t nodes) const;
};

// The origin of the position at which a run goes on.
struct Origin {
  std::string what = "the checkpoint";
  std::uint64_t next_step = 0;  // of the group, when it is ahead of the position
};

// The plan of a run, derived from the options, the cluster file and the data before it begins.
// Options and configuration outlive it.
struct Plan {
  // All nodes take their samples from one common order, with one position (shares_data), when they
  // step together, the split is iid and no shard was chosen.
  Plan(const TrainOptions& options, const Config& config, const Dataset& train);

  // The settings that should be the same on all nodes, for Adapter::require_same(): by option.
  // Under gossip nodes of different paces take other batches and lengths.
  std::vector<std::pair<std::string, std::string>> common_terms() const;
  RunLength length() const;
  // For a run with data of its own: the number of samples that counts as the whole run. Nodes that
  // step together need the same learning rate in every step although their shards differ by a
  // sample. 0 in other cases.
  double common_length() const;
  // A description of the data, for the log.
  std::string data_words(std::size_t samples) const;
  // Whether the servers of the run refuse workers with another --steps or --epochs: the learning
  // rate depends on it, and they hold the settings of the run.
  bool length_is_held() const;
  // The reason why a run that goes on at `position` would train nothing, and how to continue; none:
  // it trains.
  std::optional<std::string> nothing_left(const RunPosition& position,
                                          const Origin& origin = {}) const;
  // One independent stream for this node; nodes on the same shard by choice have streams of their
  // own.
  std::uint64_t node_stream(SeedRole role) const;

  const TrainOptions& options;
  const Config& config;
  RunIdentity identity;
};

// Threads of each device: as asked for, else those of the node (node_threads()), which the CPU
// devices share. At least 1.
int compute_threads(const TrainOptions& options, const Config& config, std::size_t processors);

// The files of --save FILE, with this name of a node for {node}. Without a network there is no
// average: the own model goes to FILE.
struct ModelPaths {
  std::filesystem::path averaged;  // empty: there will be none
  std::filesystem::path own;
};
ModelPaths model_paths(const std::filesystem::path& file, const Config& config,
                       const std::string& node);

// The learning rate after `done` of the whole length (0 to 1); `rate` is the one at the start.
constexpr double learning_rate(Schedule schedule, double rate, double done) {
  constexpr double floor = 0.5;  // where a taper ends, as a fraction of the rate
  switch (schedule) {
    case Schedule::linear:
      return rate * (1 - done);
    case Schedule::taper:
      return rate * (1 - (1 - floor) * done);
    case Schedule::constant:
      break;
  }
  return rate;
}

}  // namespace dpwa::train
