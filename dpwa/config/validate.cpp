#include "dpwa/config/validate.h"

#include <algorithm>
#include <map>

#include "dpwa/config/resolve.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

std::string node_key(std::size_t index, const std::string& name = "") {
  return "nodes[" + std::to_string(index) + "]" + (name.empty() ? "" : "." + name);
}

std::vector<std::string> node_names(const Config& config) {
  std::vector<std::string> names;
  for (const NodeEntry& node : config.nodes) names.push_back(node.name);
  return names;
}

const std::vector<std::string>& resolved(Resolver& resolver, const std::string& host,
                                         const std::string& key, const Locations& locations) {
  const Resolved& result = resolver.resolve(host);
  if (result.addresses.empty()) {
    locations.fail(key, shown(host) + " cannot be resolved (" + result.error +
                            "); accepted: an IP address or a host name known here");
  }
  return result.addresses;
}

// Two nodes that peers would dial, or that would listen, at one address and port. A wildcard or
// loopback listening address belongs to the node's own machine, so two of them clash only on one
// machine: when both nodes are dialled over loopback.
class Endpoints {
 public:
  Endpoints(const Config& config, const Locations& locations)
      : config_(config), locations_(locations) {}

  void add(std::size_t index) {
    const NodeEntry& node = config_.nodes[index];
    for (const std::string& address : node.addresses) claim(dialled_, address, index, "port");
    const bool on_loopback = is_loopback(node.addresses.front());
    const std::string machine = on_loopback ? "loopback " : "";
    if (is_wildcard(node.bind_address)) {
      if (on_loopback) claim(listening_, machine + "any", index, "bind");
    } else if (on_loopback || !is_loopback(node.bind_address)) {
      claim(listening_, machine + node.bind_address, index, "bind");
    }
  }

 private:
  using Claims = std::map<std::pair<std::string, std::uint16_t>, std::size_t>;

  void claim(Claims& claims, const std::string& address, std::size_t index,
             const std::string& key) {
    const NodeEntry& node = config_.nodes[index];
    const auto [found, first] = claims.try_emplace({address, node.port}, index);
    if (first || found->second == index) return;
    const NodeEntry& other = config_.nodes[found->second];
    const std::string& host = key == "bind" ? node.bind_host() : node.host;
    locations_.fail(node_key(index, key), shown(host + ":" + std::to_string(node.port)) +
                                              " is already the endpoint of node '" + other.name +
                                              "'; accepted: a port or host of its own");
  }

  const Config& config_;
  const Locations& locations_;
  Claims dialled_;
  Claims listening_;
};

}  // namespace

bool may_run(const Config& config, std::uint64_t nodes) {
  return config.gossip.membership.open || nodes <= config.nodes.size();
}

std::string unreachable_count(const Config& config, std::uint64_t nodes) {
  return std::to_string(nodes) + " nodes, where the file has " +
         std::to_string(config.nodes.size()) + " and gossip.membership.join is closed";
}

void check_names(const Config& config, const Locations& locations) {
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < config.nodes.size(); ++i) {
    const auto [found, first] = seen.try_emplace(config.nodes[i].name, i);
    if (!first) {
      locations.fail(node_key(i, "name"), shown(config.nodes[i].name) + " is already the name of " +
                                              node_key(found->second) +
                                              "; accepted: a name of its own");
    }
  }
}

void check_own_name(const Config& config, const std::string& name, const Locations& locations) {
  const std::vector<std::string> names = node_names(config);
  if (name.empty()) {
    locations.fail("nodes",
                   "no node name was given (--name or DPWA_NAME); accepted: " + joined(names));
  }
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    locations.fail("nodes", "no node is named " + shown(name) + ";" + suggestion(name, names) +
                                " accepted: " + joined(names));
  }
}

void resolve_nodes(Config& config, const Locations& locations) {
  Resolver resolver;
  Endpoints endpoints(config, locations);
  for (std::size_t i = 0; i < config.nodes.size(); ++i) {
    NodeEntry& node = config.nodes[i];
    node.addresses = resolved(resolver, node.host, node_key(i, "host"), locations);
    if (std::any_of(node.addresses.begin(), node.addresses.end(), is_wildcard)) {
      locations.fail(node_key(i, "host"),
                     shown(node.host) +
                         " is no address that peers can dial; accepted: the address of "
                         "the machine (and bind: " +
                         node.host + " to listen everywhere)");
    }
    const std::string bind_key = node_key(i, node.bind.empty() ? "host" : "bind");
    node.bind_address = resolved(resolver, node.bind_host(), bind_key, locations).front();
    endpoints.add(i);
    if (config.security.mode.empty() && !is_loopback(node.bind_address)) {
      locations.fail(bind_key,
                     shown(node.bind_host()) +
                         " listens beyond loopback without a security mode; accepted: "
                         "security: {mode: psk, key_file: FILE}, {mode: insecure} on a private "
                         "network, or a loopback address");
    }
  }
}

}  // namespace dpwa::config
