#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "adapters/adapter_types.h"

namespace dpwa::train {

// The identity of a run: a checkpoint continues only the same run.
struct RunIdentity {
  std::string node;
  std::string data;
  std::string split;
  std::string model;
  std::string optimizer;
  double lr = 0;
  std::string schedule;
  std::uint64_t batch_size = 0;
  std::uint64_t seed = 0;
  std::uint64_t nodes = 1;       // in the cluster file, or the N of --shard K/N
  std::uint64_t rank = 0;        // of this node in it, or K - 1
  std::uint64_t train_size = 0;  // samples of the whole training set
  // The node has its place in the file; false: a shard by --shard or --join, in an order of its
  // own.
  bool by_place = true;
  // All nodes take their samples from one order, so a run can continue with other nodes. Not stored
  // in a checkpoint, whose position shows it.
  bool shares_data = false;
};

// The progress of a run.
struct RunPosition {
  std::uint64_t step = 0;
  std::uint64_t samples = 0;  // that this node has trained on
  double train_seconds = 0;   // in the training loop, evaluations and earlier processes included
  // With shared data: the position in the common order, which is the number of samples that all
  // nodes have taken.
  std::optional<std::uint64_t> cursor = std::nullopt;
  // With a stream of its own: samples of it that were passed over. The others made these steps
  // without this node, or what it sent for them did not count.
  std::uint64_t passed_over = 0;

  std::uint64_t of_stream() const { return samples + passed_over; }
};

// The part of a checkpoint that is not tensors.
struct RunState {
  RunIdentity identity;
  RunPosition position;
  ResumeState adapter;
};

std::string to_json(const RunState& state);
RunState run_state_from_json(const std::string& text);  // throws std::exception when it is not one

// Throws ConfigError that names the first option in which the checkpoint and this run differ. With
// shared data, the number of nodes and the place or shard of this one may differ.
void require_same_run(const RunIdentity& checkpoint, const RunIdentity& here);

// The position of a checkpoint in this run, also when only one of the two shares the data: as many
// samples are done.
RunPosition carried_over(const RunState& checkpoint, const RunIdentity& here);

}  // namespace dpwa::train
