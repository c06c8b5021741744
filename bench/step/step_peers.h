#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/pull/cluster_file.h"
#include "bench/worker/group.h"

namespace dpwa::bench {

using TensorSizes = std::vector<std::pair<std::string, std::uint64_t>>;  // name, elements

// `parameters` in `tensors` parts as equal as they can be, named p0, p1, ...
TensorSizes tensor_sizes(std::uint64_t parameters, std::uint64_t tensors);

// Node w1, which is this process, and its peers in processes of their own, which serve that model
// and publish a new version whenever one was served.
class StepPeers {
 public:
  // Throws ConfigError when the settings are not accepted.
  StepPeers(const TensorSizes& tensors, std::size_t peers, const NodeSettings& settings);
  double processor_seconds() { return group_->processor_seconds(); }  // of the peers, so far
  std::string cluster_file() const { return file_->path(); }

 private:
  std::unique_ptr<ClusterFile> file_;
  std::unique_ptr<Group> group_;
};

}  // namespace dpwa::bench
