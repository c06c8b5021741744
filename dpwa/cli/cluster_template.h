#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dpwa::cli {

// Linux takes the ports of outgoing connections from this range (the default of
// net.ipv4.ip_local_port_range). A node that listens on one of them may find it in use.
inline constexpr unsigned first_ephemeral_port = 32768;
inline constexpr unsigned last_ephemeral_port = 60999;

struct ClusterTemplate {
  unsigned nodes = 4;
  std::vector<std::string> hosts = {"127.0.0.1"};  // dealt out to the nodes in turn
  std::uint16_t port = 24000;   // of the first node of each host; its others follow
  std::vector<int> processors;  // dealt out to the nodes in turn; empty = not pinned
  std::string backend = "gossip";
  unsigned servers = 0;           // of backend kvstore, dealt out to the hosts in turn
  std::uint16_t server_port = 0;  // of the first server of each host; its others follow
  bool psk = false;               // security: {mode: psk}
  bool insecure = false;          // state the security mode, which hosts beyond loopback need
};

// An annotated cluster file with the keys of that back end that most clusters need.
std::string cluster_file_text(const ClusterTemplate& wanted);

}  // namespace dpwa::cli
