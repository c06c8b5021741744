#include "dpwa/config/document.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/launched.h"
#include "dpwa/config/nodes.h"
#include "dpwa/config/original_form.h"
#include "dpwa/config/own_node.h"
#include "dpwa/config/validate.h"

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

// Of a file that leaves the nodes to a launcher, where there is none.
void require_nodes(const Config& config, const Locations& locations) {
  if (!config.nodes.empty()) return;
  locations.fail("nodes",
                 "missing; accepted: a list of {name, host, port}, or none for dpwa-train under "
                 "torchrun, srun, mpirun or Kubernetes, without --name");
}

// Without `nodes` there are none in the result.
Config read_config(const YAML::Node& document, Locations& locations) {
  const Section root(locations, document);
  std::vector<std::string> known = accepted_names(section_at(""));
  for (const std::string& key : original_keys()) known.push_back(key);
  root.accept_only(known, key_paths());
  Config config;
  config.file = locations.file();
  if (const Field* nodes = root.find("nodes")) read_nodes(*nodes, config.nodes);
  check_names(config, locations);
  const bool original = is_original_form(document.IsSequence(), root);
  if (original) {
    set_original_defaults(config.gossip);
    read_original(root, config);
  }
  read_keys(root, config);
  if (original) finish_original(root, config.gossip);
  check_min_nodes(config, locations);
  return config;
}

Config load(const std::filesystem::path& file, const std::string& name,
            const std::vector<std::string>& join, const PipePatience& patience,
            const Launcher& launcher) {
  Locations locations(file.string());
  Config config = read_config(read_document(file, locations, patience), locations);
  const bool lists_nodes = !config.nodes.empty();
  config.self = name.empty() ? name_from_environment() : name;
  if (config.self.empty() && join.empty() && launcher) launcher(config);
  require_nodes(config, locations);
  if (!lists_nodes) check_min_nodes(config, locations);
  if (!join.empty()) add_joiner(config, config.self, locations);
  check_own_name(config, config.self, locations);
  // Where a launcher's processes have met, each has told its endpoint to all.
  if (lists_nodes) apply_endpoint_variables(config, locations);
  apply_log_variables(config, locations);
  resolve_nodes(config, locations);
  read_join(join, config, locations);
  return config;
}

}  // namespace

std::size_t Config::self_index() const {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!self.empty() && nodes[i].name == self) return i;
  }
  throw std::logic_error("the configuration has no own node: load it with a node name");
}

Config load_config(const std::filesystem::path& file, const std::string& name,
                   const std::vector<std::string>& join) {
  return load(file, name, join, {}, {});
}

Config load_config(const std::filesystem::path& file, const std::string& name,
                   const std::vector<std::string>& join, const Launcher& launcher) {
  return load(file, name, join, {}, launcher);
}

Config reload_config(const std::filesystem::path& file, const std::string& name,
                     const std::vector<std::string>& join) {
  return load(file, name, join, reload_patience, {});
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

Config load_cluster(const std::filesystem::path& file) {
  Locations locations(file.string());
  Config config = load_launchable(file);
  require_nodes(config, locations);
  return config;
}

Config parse_cluster(const std::string& text, const std::filesystem::path& file) {
  Locations locations(file.string());
  Config config = read_config(parse_document(text, locations), locations);
  require_nodes(config, locations);
  return config;
}

}  // namespace dpwa
