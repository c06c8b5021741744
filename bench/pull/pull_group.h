#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/scratch_folder.h"
#include "bench/worker/group.h"

namespace dpwa::bench {

// How the nodes of a benchmark are set. The texts are values of the cluster file: the loader of the
// nodes says which it accepts.
struct NodeSettings {
  std::string transport = "tcp";  // tcp, same_host
  std::string encoding = "fp32";
  std::string security = "insecure";
  std::string key_file;  // empty: psk gets a key of its own
  bool checksum = true;
  std::uint64_t chunk_bytes = 0;  // 0 = the default
  bool daemon = false;            // gossip.daemon
};

// A cluster file of nodes w1, w2, ... on loopback.
std::string cluster_file_text(const NodeSettings& settings,
                              const std::vector<std::uint16_t>& ports);

// cluster.yaml in a folder of its own, gone at the end.
class ClusterFile {
 public:
  // Throws ConfigError, without the name of the file, when the settings are not accepted.
  ClusterFile(const NodeSettings& settings, const std::vector<std::uint16_t>& ports);

  std::string path() const { return folder_.path() + "/cluster.yaml"; }
  std::uint32_t chunk_bytes() const { return chunk_bytes_; }  // in force

 private:
  const ScratchFolder folder_;
  std::uint32_t chunk_bytes_ = 0;
};

std::string node_name(std::size_t index);  // w1, w2, ...

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
// landing (as dpwa lands), checked (landing, of a new version each time, with checksums as dpwa has
// them), ping_pong (receive only, in a thread of its own, as dpwa does).
std::unique_ptr<Group> make_raw_group(const Topology& topology, const std::string& mode);
// That it takes, in bytes.
std::uint64_t raw_group_memory(const Topology& topology, const std::string& mode);

}  // namespace dpwa::bench
