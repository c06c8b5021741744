#include "dpwa/config/nodes.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "dpwa/base/numbers.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/resolve_host.h"
#include "dpwa/config/field.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/resolve.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

constexpr int max_core = 65535;

std::vector<int> read_cores(const Field& field) {
  std::vector<int> cores;
  for (const Field& item : field.list("a list of processor numbers such as [0, 1]")) {
    const int core = static_cast<int>(item.integer(0, max_core, "a processor number"));
    if (std::find(cores.begin(), cores.end(), core) != cores.end()) {
      item.fail("processor " + std::to_string(core) + " is given twice; accepted: each once");
    }
    cores.push_back(core);
  }
  return cores;
}

std::string read_host(const Field& field) {
  const std::string accepted = "an IP address or a host name";
  const std::string host = field.text(accepted);
  const bool blank = host.empty() || host.find(' ') != std::string::npos;
  if (blank || host.size() > 253 || !is_plain_text(host)) {
    field.fail_type("a host", accepted);
  }
  return host;
}

std::uint16_t read_port(const Field& field) {
  return static_cast<std::uint16_t>(field.integer(1, 65535, "a TCP port"));
}

NodeEntry read_node(const Section& section) {
  section.accept_only({"name", "host", "port", "bind", "cores"});
  NodeEntry node;
  node.name = section.need("name", "a name of its own").name();
  node.port = read_port(section.need("port", "a TCP port from 1 to 65535"));
  if (const Field* host = section.find("host")) node.host = read_host(*host);
  if (const Field* bind = section.find("bind")) node.bind = read_host(*bind);
  if (const Field* cores = section.find("cores")) node.cores = read_cores(*cores);
  return node;
}

void check_name(const std::string& list, const std::string& kind,
                const std::vector<std::string>& names, const std::string& name,
                const Locations& locations) {
  if (name.empty()) {
    locations.fail(
        list, "no " + kind + " name was given (--name or DPWA_NAME); accepted: " + joined(names));
  }
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    locations.fail(list, "no " + kind + " is named " + shown(name) + ";" + suggestion(name, names) +
                             " accepted: " + joined(names));
  }
}

// The value of a variable as if it had been written for `key` in the file.
std::optional<Field> environment_field(const char* variable, const std::string& key,
                                       Locations& locations) {
  const char* value = std::getenv(variable);
  if (!value || !*value) return std::nullopt;
  Field field(locations, key, 0, YAML::Node(std::string(value)));
  locations.place_in_environment(key, variable);
  return field;
}

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw ConfigError("--join: " + shown(text) + " " + why);
}

NodeEntry parse(const std::string& text) {
  std::optional<NodeEntry> entry = parse_endpoint(text);
  if (!entry || entry->port == 0)
    refuse(text, "is not the address of a node; accepted: HOST:PORT, such as 10.0.0.1:7001");
  return std::move(*entry);
}

// Whether every address of the entry belongs to this node itself. A host name of several machines,
// this one among them, does not count.
bool is_own(const NodeEntry& entry, const NodeEntry& self) {
  const auto own = [&self](const std::string& address) {
    return std::ranges::find(self.addresses, address) != self.addresses.end() ||
           address == self.bind_address || (is_wildcard(self.bind_address) && is_loopback(address));
  };
  return entry.port == self.port && std::ranges::all_of(entry.addresses, own);
}

}  // namespace

std::optional<NodeEntry> parse_endpoint(const std::string& text,
                                        std::optional<std::uint16_t> otherwise) {
  NodeEntry entry;
  const auto colon = text.rfind(':');
  const bool bare_ipv6 = text.find(':') != colon && text.front() != '[';
  if (colon == std::string::npos || bare_ipv6 || text.ends_with(']')) {
    entry.host = text;
  } else {
    entry.host = text.substr(0, colon);
    otherwise = number_in<std::uint16_t>(text.substr(colon + 1));
  }
  if (entry.host.size() >= 2 && entry.host.front() == '[' && entry.host.back() == ']')
    entry.host = entry.host.substr(1, entry.host.size() - 2);
  const bool sound = !entry.host.empty() && entry.host.find('/') == std::string::npos &&
                     (entry.host.find(':') == std::string::npos || is_numeric_host(entry.host));
  if (!sound || !otherwise) return std::nullopt;
  entry.port = *otherwise;
  return entry;
}

std::vector<NodeEntry> read_nodes(const Field& list) {
  const std::vector<Field> items = list.list("a list of {name, host, port}");
  if (items.empty()) list.fail("an empty list; accepted: at least one {name, host, port}");
  std::vector<NodeEntry> nodes;
  for (const Field& item : items) nodes.push_back(read_node(Section(item, "{name, host, port}")));
  return nodes;
}

std::vector<std::string> names_of(const std::vector<NodeEntry>& nodes) {
  std::vector<std::string> names;
  for (const NodeEntry& node : nodes) names.push_back(node.name);
  return names;
}

void print_nodes(YAML::Emitter& out, const std::vector<NodeEntry>& nodes) {
  out << YAML::BeginSeq;
  for (const NodeEntry& node : nodes) {
    out << YAML::Flow << YAML::BeginMap;
    out << YAML::Key << "name" << YAML::Value << node.name;
    out << YAML::Key << "host" << YAML::Value << node.host;
    if (!node.bind.empty()) out << YAML::Key << "bind" << YAML::Value << node.bind;
    out << YAML::Key << "port" << YAML::Value << node.port;
    if (!node.cores.empty()) out << YAML::Key << "cores" << YAML::Value << YAML::Flow << node.cores;
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void check_names(const Config& config, const Locations& locations) {
  std::map<std::string, std::string> seen;
  const auto check = [&](const std::string& list, const std::vector<NodeEntry>& entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string place = list + "[" + std::to_string(i) + "]";
      const auto [found, first] = seen.try_emplace(entries[i].name, place);
      if (!first) {
        locations.fail(place + ".name", shown(entries[i].name) + " is already the name of " +
                                            found->second + "; accepted: a name of its own");
      }
    }
  };
  check("nodes", config.nodes);
  check("kvstore.servers", config.kvstore.servers);
}

void check_own_name(const Config& config, const std::string& name, const Locations& locations) {
  check_name("nodes", "node", names_of(config.nodes), name, locations);
}

void check_server_name(const Config& config, const std::string& name, const Locations& locations) {
  if (config.kvstore.servers.empty()) {
    locations.fail("kvstore.servers", "missing; accepted: a list of {name, host, port}");
  }
  check_name("kvstore.servers", "server", names_of(config.kvstore.servers), name, locations);
}

void check_process_name(const Config& config, const std::string& name, const Locations& locations) {
  std::vector<std::string> names = names_of(config.nodes);
  const std::vector<std::string> servers = names_of(config.kvstore.servers);
  names.insert(names.end(), servers.begin(), servers.end());
  check_name("nodes", servers.empty() ? "node" : "node or server", names, name, locations);
}

std::string given_name(const std::string& name, Locations& locations) {
  const char* value = std::getenv("DPWA_NAME");
  if (!name.empty() || !value) return name;
  locations.place_in_environment("--name", "DPWA_NAME");
  return value;
}

void apply_endpoint_variables(Config& config, Locations& locations, bool with_port) {
  const auto server = std::ranges::find(config.kvstore.servers, config.self, &NodeEntry::name);
  const bool serves = server != config.kvstore.servers.end();
  NodeEntry& self = serves ? *server : config.nodes[config.self_index()];
  const auto index = &self - (serves ? config.kvstore.servers : config.nodes).data();
  const std::string node = (serves ? "kvstore.servers[" : "nodes[") + std::to_string(index) + "].";
  if (const auto field = environment_field("DPWA_HOST", node + "host", locations)) {
    self.host = read_host(*field);
  }
  const auto port = environment_field("DPWA_PORT", node + "port", locations);
  if (port && with_port) self.port = read_port(*port);
  if (const auto field = environment_field("DPWA_BIND", node + "bind", locations)) {
    self.bind = read_host(*field);
  }
}

void apply_log_variables(Config& config, Locations& locations) {
  if (const auto field = environment_field("DPWA_LOG_LEVEL", "log.level", locations)) {
    key_at("log.level").read(*field, config);
  }
}

std::string checked_name(const std::string& name, Locations& locations) {
  return Field(locations, "--name", 0, YAML::Node(name)).name();
}

void add_joiner(Config& config, const std::string& name, Locations& locations) {
  const bool in_file =
      std::ranges::any_of(config.nodes, [&](const NodeEntry& node) { return node.name == name; });
  if (in_file || name.empty()) return;
  const char* port = std::getenv("DPWA_PORT");
  if (port == nullptr || *port == '\0') {
    throw ConfigError(one_line(locations.file()) + ": nodes: " + shown(name) +
                      " is not in the file, so its address is unknown; accepted: DPWA_PORT (and "
                      "DPWA_HOST) in the environment, or a node of the file");
  }
  NodeEntry self;
  self.name = checked_name(name, locations);
  config.nodes.push_back(std::move(self));
  config.self_added = true;
}

void read_join(const std::vector<std::string>& join, Config& config) {
  Resolver resolver;
  for (const std::string& text : join) {
    NodeEntry entry = parse(text);
    // A name that is not known yet is resolved again while the node tries to join.
    entry.addresses = resolver.resolve(entry.host).addresses;
    if (!entry.addresses.empty() && is_own(entry, config.self_node())) {
      refuse(text, "is where this node, " + shown(config.self) +
                       ", listens itself; accepted: the HOST:PORT of another node");
    }
    config.join.push_back(std::move(entry));
  }
}

}  // namespace dpwa::config
