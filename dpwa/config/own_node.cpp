#include "dpwa/config/own_node.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "dpwa/config/field.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/nodes.h"
#include "dpwa/config/resolve.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

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
  const auto colon = text.rfind(':');
  NodeEntry entry;
  entry.host = text.substr(0, colon == std::string::npos ? 0 : colon);
  if (entry.host.size() > 2 && entry.host.front() == '[' && entry.host.back() == ']')
    entry.host = entry.host.substr(1, entry.host.size() - 2);
  const char* end = text.data() + text.size();
  const char* digits = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto [read, error] = std::from_chars(digits, end, entry.port);
  if (entry.host.empty() || error != std::errc{} || read != end || entry.port == 0) {
    refuse(text, "does not say where a node listens; accepted: HOST:PORT, such as 10.0.0.1:7001");
  }
  return entry;
}

// Every address of the entry is one of this node itself. A name that stands for several machines,
// this one among them, is none of that.
bool is_own(const NodeEntry& entry, const NodeEntry& self) {
  const auto own = [&self](const std::string& address) {
    return std::ranges::find(self.addresses, address) != self.addresses.end() ||
           address == self.bind_address || (is_wildcard(self.bind_address) && is_loopback(address));
  };
  return entry.port == self.port && std::ranges::all_of(entry.addresses, own);
}

}  // namespace

std::string name_from_environment() {
  const char* value = std::getenv("DPWA_NAME");
  return value ? value : "";
}

void apply_endpoint_variables(Config& config, Locations& locations) {
  NodeEntry& self = config.nodes[config.self_index()];
  const std::string node = "nodes[" + std::to_string(config.self_index()) + "].";
  if (const auto field = environment_field("DPWA_HOST", node + "host", locations)) {
    self.host = read_host(*field);
  }
  if (const auto field = environment_field("DPWA_PORT", node + "port", locations)) {
    self.port = read_port(*field);
  }
  if (const auto field = environment_field("DPWA_BIND", node + "bind", locations)) {
    self.bind = read_host(*field);
  }
}

void apply_log_variables(Config& config, Locations& locations) {
  if (const auto field = environment_field("DPWA_LOG_LEVEL", "log.level", locations)) {
    key_at("log.level").read(*field, config);
  }
}

void add_joiner(Config& config, const std::string& name, Locations& locations) {
  const bool in_file =
      std::ranges::any_of(config.nodes, [&](const NodeEntry& node) { return node.name == name; });
  if (in_file || name.empty()) return;
  const char* port = std::getenv("DPWA_PORT");
  if (port == nullptr || *port == '\0') {
    throw ConfigError(locations.file() + ": nodes: " + shown(name) +
                      " is not in the file, which says where a node listens; accepted: DPWA_PORT "
                      "(and DPWA_HOST) in the environment, or a node of the file");
  }
  const Field field(locations, "--name", 0, YAML::Node(name));
  NodeEntry self;
  self.name = field.name();
  config.nodes.push_back(std::move(self));
  config.self_added = true;
}

void read_join(const std::vector<std::string>& join, Config& config, Locations&) {
  Resolver resolver;
  for (const std::string& text : join) {
    NodeEntry entry = parse(text);
    const Resolved& resolved = resolver.resolve(entry.host);
    if (resolved.addresses.empty()) {
      refuse(text, "cannot be resolved (" + resolved.error +
                       "); accepted: an IP address or a host name known here");
    }
    entry.addresses = resolved.addresses;
    if (is_own(entry, config.self_node())) {
      refuse(text, "is where this node, " + shown(config.self) +
                       ", listens itself; accepted: the HOST:PORT of another node");
    }
    config.join.push_back(std::move(entry));
  }
}

}  // namespace dpwa::config
