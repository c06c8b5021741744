#include "dpwa/config/node_threads.h"

#include <algorithm>
#include <span>
#include <string>

#include "dpwa/base/processors.h"
#include "dpwa/config/resolve.h"

namespace dpwa {
namespace {

// Among the first `count` nodes of the file.
std::size_t on_own_host(const Config& config, std::size_t count) {
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
  return static_cast<std::size_t>(
      std::ranges::count_if(std::span(config.nodes).first(count), same_host));
}

}  // namespace

std::size_t nodes_on_own_host(const Config& config) {
  return on_own_host(config, config.nodes.size());
}

std::size_t place_on_own_host(const Config& config) {
  return on_own_host(config, config.self_index());
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
