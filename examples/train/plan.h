#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/parallel/seed_streams.h"
#include "dpwa/parallel/shares.h"
#include "examples/train/choices.h"
#include "examples/train/data_sets.h"
#include "examples/train/options.h"
#include "examples/train/run_state.h"

namespace dpwa::train {

// Refuses what the options or the file ask of other nodes and this run cannot have: throws
// UsageError.
void check_company(const TrainOptions& options, const Config& config);

// Throws UsageError when the data set needs files and nothing says where they are.
void require_data_directory(const TrainOptions& options);

// The plan of a run, derived from the options, the cluster file and the data before it begins.
RunIdentity identify(const TrainOptions& options, const Config& config, const Dataset& train);

// Whether all nodes take their samples from one common order, with one position: where they step
// together, the split is iid and no shard was chosen.
bool shares_data(const TrainOptions& options, const Config& config);

// The settings that are the same on all nodes that step together, for Adapter::require_same(): by
// option.
std::vector<std::pair<std::string, std::string>> common_terms(const TrainOptions& options,
                                                              const RunIdentity& identity);

// Where a run ends. In a run of one's own: after the samples that this node takes in it. Where the
// nodes share the data: with --epochs after the samples of all nodes, with --steps after that step,
// however many nodes make it.
struct RunLength {
  std::uint64_t samples = SharedCursor::no_end;
  std::uint64_t steps = SharedCursor::no_end;
};
RunLength run_length(const TrainOptions& options, const RunIdentity& identity);

// Of a run of one's own, what its progress is a part of: samples, where nodes that step together
// need the same learning rate in every step though their shards differ by one; else 0.
double common_length(const TrainOptions& options, const Config& config,
                     const RunIdentity& identity);

// The number of steps of such a run with `nodes` nodes.
std::uint64_t steps_of(const RunLength& length, std::uint64_t batch_size, std::uint64_t nodes);

// Which data that is, for the log.
std::string data_words(const TrainOptions& options, const Config& config,
                       const RunIdentity& identity, std::size_t samples);

// The reason why a run resumed at `position` would train nothing, and how to train on; none: it
// trains.
std::optional<std::string> nothing_left(const TrainOptions& options, const RunIdentity& identity,
                                        const RunPosition& position);

// One independent stream for this node; nodes on the same shard by choice have streams of their
// own.
std::uint64_t node_stream(const TrainOptions& options, const Config& config,
                          const RunIdentity& identity, SeedRole role);

// Of each device: as asked for, else one per core of the node in the cluster file, else the
// processors that this process may run on divided by the nodes of the file on its host; what is not
// asked for is shared by the CPU devices. At least 1.
int compute_threads(const TrainOptions& options, const Config& config, std::size_t processors);

// How many nodes of the file, this one included, are on the host of this one, by their addresses.
std::size_t nodes_on_own_host(const Config& config);

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
