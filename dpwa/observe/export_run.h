#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/observe/node_status.h"

namespace dpwa::observe {

// The metrics of a run in forms of other programs. Each throws std::runtime_error with one line
// when there are no metrics in the folder.

// One table: a row for each line of NODE.metrics.jsonl, with the columns `node` and all keys that
// docs/TRAINING.md lists. What has no value is empty.
void write_csv(const std::filesystem::path& run, std::ostream& out);

// A folder for each node below `out`, with an event file of TensorBoard: each number as a scalar of
// its key. A file that is there already is replaced. Throws also when one cannot be written.
void write_tensorboard(const std::filesystem::path& run, const std::filesystem::path& out);

// One record of an event file: the length, the bytes of the message tensorboard.Event, and the
// masked CRC32C of each (TFRecord). `values`: scalars by tag. Pure.
std::string event_record(double wall, std::int64_t step,
                         const std::vector<std::pair<std::string, float>>& values);

}  // namespace dpwa::observe
