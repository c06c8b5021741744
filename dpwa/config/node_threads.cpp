#include "dpwa/config/node_threads.h"

#include <algorithm>
#include <string>

#include "dpwa/base/processors.h"
#include "dpwa/config/resolve.h"

namespace dpwa {

std::size_t nodes_on_own_host(const Config& config) {
  const NodeEntry& self = config.self_node();
  const auto is_loopback = [](const std::string& address) { return config::is_loopback(address); };
  const bool on_loopback = std::ranges::any_of(self.addresses, is_loopback);
  const auto same_host = [&](const NodeEntry& node) {
    if (node.host == self.host) return true;
    return std::ranges::any_of(node.addresses, [&](const std::string& address) {
      return (on_loopback && is_loopback(address)) ||
             std::ranges::find(self.addresses, address) != self.addresses.end();
    });
  };
  return static_cast<std::size_t>(std::ranges::count_if(config.nodes, same_host));
}

int node_threads(const Config& config, std::size_t processors) {
  const std::size_t cores = config.self_node().cores.size();
  const std::size_t own =
      cores != 0 ? std::min(cores, processors) : processors / nodes_on_own_host(config);
  return static_cast<int>(std::max<std::size_t>(1, own));
}

int node_threads(const Config& config) {
  return node_threads(config, processor_count());
}

}  // namespace dpwa
