#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dpwa::cli {

struct ClusterTemplate {
  unsigned nodes = 4;
  std::string host = "127.0.0.1";
  std::uint16_t port = 45000;   // of the first node; the others follow
  std::vector<int> processors;  // dealt out to the nodes in turn; empty = not pinned
  bool psk = false;             // security: {mode: psk}
  bool insecure = false;        // state the security mode, which hosts beyond loopback need
};

// An annotated cluster file with every key at its default.
std::string cluster_file_text(const ClusterTemplate& wanted);

}  // namespace dpwa::cli
