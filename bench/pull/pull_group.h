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

}  // namespace dpwa::bench
