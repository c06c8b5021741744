#include "dpwa/config/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "dpwa/config/document.h"
#include "dpwa/config/field.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/nodes.h"
#include "dpwa/config/original_form.h"
#include "dpwa/config/resolve.h"
#include "dpwa/config/seeds.h"
#include "dpwa/config/text.h"
#include "dpwa/kvstore/shard_engine.h"
#include "interpolation/guarded.h"
#include "interpolation/registry.h"

namespace dpwa {
namespace {

using namespace config;

// In a closed cluster only the nodes of the file count.
void check_min_nodes(const Config& config, const Locations& locations) {
  if (config.nodes.empty() || config.backend != Backend::gossip) return;
  if (may_run(config, config.gossip.min_nodes)) return;
  locations.fail("gossip.min_nodes", unreachable_count(config, config.gossip.min_nodes) +
                                         "; accepted: at most " +
                                         std::to_string(config.nodes.size()) + ", or join: open");
}

// A process cannot listen twice at one port.
void check_observe_port(const Config& config, const Locations& locations) {
  for (const auto* const entries : {&config.nodes, &config.kvstore.servers}) {
    for (const NodeEntry& entry : *entries) {
      if (entry.port == config.observe.port)
        locations.fail("observe.port", std::to_string(entry.port) + " is the port of '" +
                                           entry.name + "'; accepted: one that no process has");
    }
  }
}

// Refuses a file that leaves the nodes to a launcher when there is no launcher.
void require_nodes(const Config& config, const Locations& locations) {
  if (!config.nodes.empty()) return;
  locations.fail("nodes",
                 "missing; accepted: a list of {name, host, port}; seeds; or none for dpwa-train "
                 "under torchrun, srun, mpirun or Kubernetes, or with RANK and WORLD_SIZE, without "
                 "--name");
}

// When the file has no `nodes`, neither does the result.
Config read_config(const YAML::Node& document, Locations& locations) {
  const Section root(locations, document);
  std::vector<std::string> known = accepted_names(section_at(""));
  for (const std::string& key : original_keys()) known.push_back(key);
  root.accept_only(known, key_paths());
  Config config;
  config.file = locations.file();
  if (const Field* nodes = root.find("nodes")) {
    key_at("nodes").read(*nodes, config);
    for (const Field& node : nodes->list("a list")) config.lines[node.key()] = node.line();
  }
  config.original_form_by = original_form_by(document.IsSequence(), root);
  const bool original = !config.original_form_by.empty();
  if (original) {
    set_original_defaults(config.gossip);
    read_original(root, config);
  }
  read_keys(root, config);
  check_names(config, locations);
  if (original) finish_original(root, config.gossip);
  check_min_nodes(config, locations);
  check_observe_port(config, locations);
  check_seeds(config, locations);
  return config;
}

// The file that was read, for one of its nodes.
Config for_node(Config config, const std::string& name, const std::vector<std::string>& join,
                const Launcher& launcher, Locations& locations) {
  const bool lists_nodes = !config.nodes.empty();
  resolve_seeds(config, locations);
  config.self = given_name(name, locations);
  const bool by_rank = config.self.empty() || config.self.find(rank_mark) != std::string::npos;
  if (by_rank && join.empty() && launcher) launcher(config);
  if (!lists_nodes && !config.seeds.empty() && join.empty()) {
    add_self_by_seeds(config, locations);
    apply_log_variables(config, locations);
    resolve_nodes(config, locations);
    return config;
  }
  require_nodes(config, locations);
  if (!lists_nodes) check_min_nodes(config, locations);
  if (!join.empty()) add_joiner(config, config.self, locations);
  check_own_name(config, config.self, locations);
  // The processes of a launcher have already told each other their endpoints.
  if (lists_nodes) apply_endpoint_variables(config, locations);
  apply_log_variables(config, locations);
  resolve_nodes(config, locations);
  read_join(join, config);
  return config;
}

Config for_server(Config config, const std::string& name, Locations& locations) {
  config.self = given_name(name, locations);
  check_server_name(config, config.self, locations);
  apply_endpoint_variables(config, locations);
  apply_log_variables(config, locations);
  resolve_nodes(config, locations);
  return config;
}

Config load(const std::filesystem::path& file, const std::string& name,
            const std::vector<std::string>& join, const PipePatience& patience,
            const Launcher& launcher) {
  Locations locations(file.string());
  Config config = read_config(read_document(file, locations, patience), locations);
  return for_node(std::move(config), name, join, launcher, locations);
}

bool has_values(const KeySection& section, const Config& config) {
  return std::ranges::any_of(section.keys, [&](const Key& key) {
    return key.print(config) && (section.required.empty() || section.required == key.name);
  });
}

void print_key(YAML::Emitter& out, const Key& key, const Config& config) {
  const std::optional<std::string> value = key.print(config);
  if (!value) return;
  out << YAML::Key << key.name << YAML::Value;
  if (key.name == "nodes") return print_nodes(out, config.nodes);
  if (key.name == "seeds") {
    out << YAML::Flow << texts_of(config.seeds);
    return;
  }
  if (key.name == "servers") return print_nodes(out, config.kvstore.servers);
  if (key.quoted) out << YAML::DoubleQuoted;
  out << *value;
}

void print_keys(YAML::Emitter& out, const KeySection& section, const Config& config) {
  for (const Key& key : section.keys) {
    print_key(out, key, config);
    if (path_of(section, key) == "interpolation.method") {
      for (const auto& [name, value] : config.interpolation.parameters)
        out << YAML::Key << name << YAML::Value << number_text(value);
    }
  }
  for (const KeySection* inner : sections_in(section)) {
    if (!has_values(*inner, config)) continue;
    out << YAML::Key << leaf_of(*inner) << YAML::Value;
    if (inner->layout == Layout::flow) out << YAML::Flow;
    out << YAML::BeginMap;
    print_keys(out, *inner, config);
    out << YAML::EndMap;
  }
}

}  // namespace

std::size_t Config::self_index() const {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!self.empty() && nodes[i].name == self) return i;
  }
  throw std::logic_error("the configuration has no own node: load it with a node name");
}

const NodeEntry* Config::self_server() const {
  const auto found = std::ranges::find(kvstore.servers, self, &NodeEntry::name);
  return self.empty() || found == kvstore.servers.end() ? nullptr : &*found;
}

bool may_run(const Config& config, std::uint64_t nodes) {
  return config.gossip.membership.open || nodes <= config.nodes.size();
}

std::string unreachable_count(const Config& config, std::uint64_t nodes) {
  return std::to_string(nodes) + " nodes, where the file has " +
         std::to_string(config.nodes.size()) + " and gossip.membership.join is closed";
}

void fail_at_key(const Config& config, const std::string& key, const std::string& problem) {
  Locations locations(config.file.empty() ? "configuration" : config.file.string());
  for (const auto& [path, line] : config.lines) locations.place(path, line);
  locations.fail(key, problem);
}

Config load_config(const std::filesystem::path& file, const std::string& name,
                   const std::vector<std::string>& join, const Launcher& launcher) {
  return load(file, name, join, {}, launcher);
}

Config reload_config(const std::filesystem::path& file, const std::string& name,
                     const std::vector<std::string>& join, const Launcher& launcher) {
  return load(file, name, join, reload_patience, launcher);
}

Config load_launchable(const std::filesystem::path& file) {
  Locations locations(file.string());
  Config config = read_config(read_document(file, locations), locations);
  resolve_nodes(config, locations);
  return config;
}

Config load_cluster(const std::filesystem::path& file, std::string* text) {
  Locations locations(file.string());
  const std::string read = in_utf8(read_cluster_text(file, locations), locations);
  if (text) *text = read;
  Config config = read_config(parse_document(read, locations), locations);
  resolve_nodes(config, locations);
  resolve_seeds(config, locations);
  if (config.seeds.empty()) require_nodes(config, locations);
  return config;
}

Config load_server_config(const std::filesystem::path& file, const std::string& name) {
  Locations locations(file.string());
  Config config = read_config(read_document(file, locations), locations);
  return for_server(std::move(config), name, locations);
}

Config load_process_config(const std::filesystem::path& file, const std::string& name) {
  Locations locations(file.string());
  Config config = read_config(read_document(file, locations), locations);
  const std::vector<NodeEntry>& servers = config.kvstore.servers;
  if (std::ranges::find(servers, name, &NodeEntry::name) != servers.end())
    return for_server(std::move(config), name, locations);
  if (!config.nodes.empty()) check_process_name(config, name, locations);
  return for_node(std::move(config), name, {}, {}, locations);
}

Config parse_cluster(const std::string& text, const std::filesystem::path& file) {
  Locations locations(file.string());
  Config config = read_config(parse_document(text, locations), locations);
  require_nodes(config, locations);
  return config;
}

std::string to_yaml(const Config& config) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  print_keys(out, config::section_at(""), config);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

GuardedInterpolation make_interpolation(const InterpolationConfig& config) {
  const auto value = config.parameters.find("value");
  const double fallback = value != config.parameters.end() ? value->second : 0.5;
  auto policy = interpolation_registry().make(config.method, config.parameters);
  return GuardedInterpolation(
      with_divergence_threshold(std::move(policy), config.divergence_threshold), fallback);
}

std::size_t first_workers(const Config& config) {
  return config.kvstore.min_workers > 0 ? config.kvstore.min_workers : config.nodes.size();
}

kvstore::ShardRules store_rules(const Config& config) {
  const KvstoreConfig& store = config.kvstore;
  return kvstore::rules_of(store.type, store.staleness, store.replicas > 0);
}

}  // namespace dpwa
