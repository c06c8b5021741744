#include "dpwa/config/seeds.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "dpwa/base/own_address.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/resolve_host.h"
#include "dpwa/config/field.h"
#include "dpwa/config/nodes.h"
#include "dpwa/config/resolve.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

// The host name as the name of a node: what a name cannot have becomes '-'.
std::string name_of_host() {
  constexpr std::size_t longest = 64;
  std::string name = host_name().substr(0, longest);
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '-' && c != '_'; },
      '-');
  if (name.empty() || name.front() == '.' || name.front() == '-') name.insert(0, "n");
  return name;
}

// By which others reach this process: seeds on loopback are reached from there.
std::string own_host(const Config& config) {
  std::string local;
  for (const NodeEntry& seed : config.seeds) {
    for (const std::string& address : seed.addresses) {
      const std::string own = own_address_towards(address);
      if (!own.empty() && !is_loopback(own)) return own;
      if (local.empty()) local = own;
    }
  }
  if (!local.empty()) return local;
  for (const std::string& address : resolve_host(host_name()).addresses)
    if (!is_loopback(address)) return address;
  return "127.0.0.1";
}

}  // namespace

std::vector<NodeEntry> read_seeds(const Field& list) {
  const std::string accepted = "HOST or HOST:PORT, such as train.default.svc or 10.0.0.1:24000";
  const std::vector<Field> items = list.list("a list of HOST or HOST:PORT");
  if (items.empty()) list.fail("an empty list; accepted: at least one " + accepted);
  std::vector<NodeEntry> seeds;
  for (const Field& item : items) {
    const std::string text = item.text(accepted);
    std::optional<NodeEntry> seed = parse_endpoint(text, seed_port);
    if (!seed || seed->port == 0 || seed->host.size() > 253 || !is_plain_text(seed->host) ||
        seed->host.find(' ') != std::string::npos ||
        seed->host.find_first_not_of("0123456789") == std::string::npos)  // a port alone
      item.fail_type("the address of a node", accepted);
    seeds.push_back(*std::move(seed));
  }
  return seeds;
}

std::vector<std::string> texts_of(const std::vector<NodeEntry>& seeds) {
  std::vector<std::string> texts;
  for (const NodeEntry& seed : seeds) {
    const bool is_ipv6 = seed.host.find(':') != std::string::npos;
    texts.push_back((is_ipv6 ? "[" + seed.host + "]" : seed.host) + ":" +
                    std::to_string(seed.port));
  }
  return texts;
}

void resolve_seeds(Config& config, const Locations& locations) {
  Resolver resolver;
  for (NodeEntry& seed : config.seeds)
    seed.addresses = addresses_of(seed.host, resolver, false, "seeds", locations);
}

void check_seeds(const Config& config, const Locations& locations) {
  if (config.seeds.empty() || !config.nodes.empty()) return;
  if (config.backend != Backend::gossip && config.backend != Backend::null)
    locations.fail("seeds", "nodes without a list are for backend gossip; accepted: nodes");
  if (!config.gossip.membership.open)
    locations.fail("gossip.membership.join",
                   "'closed' refuses the nodes that the seeds bring together; accepted: open");
}

void add_self_by_seeds(Config& config, Locations& locations) {
  const bool placed = !config.nodes.empty();  // by a launcher
  if (!placed) {
    if (config.self.empty()) config.self = name_of_host();
    NodeEntry self;
    self.name = config.self;
    self.port = seed_port;
    config.nodes.push_back(std::move(self));
  }
  checked_name(config.self, locations);
  config.self_added = true;
  config.by_seeds = true;
  config.nodes.front().host = own_host(config);
  apply_endpoint_variables(config, locations, !placed);
  config.join = config.seeds;
}

}  // namespace dpwa::config
