#pragma once

#include <memory>
#include <string>

#include "bench/pull/cluster_file.h"
#include "bench/worker/group.h"
#include "bench/worker/topology.h"

namespace dpwa::bench {

// Node processes that pull as training does.
class PullGroup {
 public:
  // Throws ConfigError when the settings are not accepted.
  PullGroup(const Topology& topology, const NodeSettings& settings, bool blend);

  Group& group() { return *group_; }
  std::uint32_t chunk_bytes() const { return file_->chunk_bytes(); }

 private:
  std::unique_ptr<ClusterFile> file_;
  std::unique_ptr<Group> group_;
};

// Full-size buffers of a node: three snapshots, the landing, and the parameters when it blends.
std::uint64_t pull_node_buffers(bool blend);

// Bytes that a node takes beside its full-size buffers, most of all nodes: its peak resident size
// without the pages that it maps of its peers' snapshots, which are not its own, less the buffers,
// less the same of a node with a model of 200 bytes (so that the code does not count), plus the
// staging buffer, which both have.
double memory_beyond_buffers(const std::vector<Json>& reports, const std::vector<Json>& small,
                             std::uint64_t buffers, std::uint64_t bytes, std::uint32_t chunk_bytes);

// Node processes that pull by bare sockets. `mode`: in_place (blend while it arrives: the limit),
// landing (as dpwa lands), ping_pong (receive only).
std::unique_ptr<Group> make_raw_group(const Topology& topology, const std::string& mode);
std::uint64_t raw_group_memory(const Topology& topology);  // that it takes, in bytes

}  // namespace dpwa::bench
