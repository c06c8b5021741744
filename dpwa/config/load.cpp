#include "dpwa/config/document.h"
#include "dpwa/config/join.h"
#include "dpwa/config/original_form.h"
#include "dpwa/config/overrides.h"
#include "dpwa/config/sections.h"
#include "dpwa/config/validate.h"

namespace dpwa {
namespace {

using namespace config;

std::vector<std::string> top_level_keys() {
  std::vector<std::string> keys = {"cluster",       "nodes",    "backend",   "gossip",
                                   "interpolation", "security", "transport", "log"};
  const std::vector<std::string> original = original_keys();
  keys.insert(keys.end(), original.begin(), original.end());
  return keys;
}

// Keys of sections, to suggest the section to one who writes them at the top level.
std::vector<std::string> section_keys() {
  std::vector<std::string> keys = {"security.mode", "security.key_file", "log.level", "log.file"};
  for (const std::string& key : gossip_keys()) keys.push_back("gossip." + key);
  for (const std::string& key : transport_keys()) keys.push_back("transport." + key);
  return keys;
}

void read_sections(const Section& root, Config& config) {
  if (const Field* field = root.find("cluster")) config.cluster = field->name();
  if (const Field* field = root.find("backend")) config.backend = read_backend(*field);
  if (const Field* field = root.find("gossip")) read_gossip(Section(*field), config.gossip);
  if (const Field* field = root.find("interpolation"); field && !field->is_scalar()) {
    read_interpolation(Section(*field, "a method name or a map with 'method'"),
                       config.interpolation);
  }
  if (const Field* field = root.find("security")) {
    read_security(Section(*field, "{mode: insecure | psk | mtls}"), config.security);
  }
  if (const Field* field = root.find("transport"))
    read_transport(Section(*field), config.transport);
  if (const Field* field = root.find("log")) read_log(Section(*field), config.log);
}

Config read_config(const YAML::Node& document, Locations& locations) {
  const Section root(locations, document);
  root.accept_only(top_level_keys(), section_keys());
  Config config;
  config.file = locations.file();
  read_nodes(root.need("nodes", "a list of {name, host, port}"), config.nodes);
  check_names(config, locations);
  const bool original = is_original_form(document.IsSequence(), root);
  if (original) {
    set_original_defaults(config.gossip);
    read_original(root, config);
  }
  read_sections(root, config);
  if (original) finish_original(root, config.gossip);
  return config;
}

}  // namespace

Config load_config(const std::filesystem::path& file, const std::string& name,
                   const std::vector<std::string>& join) {
  Locations locations(file.string());
  Config config = read_config(read_document(file, locations), locations);
  config.self = name.empty() ? name_from_environment() : name;
  if (!join.empty()) add_joiner(config, config.self, locations);
  check_own_name(config, config.self, locations);
  apply_environment(config, locations);
  resolve_nodes(config, locations);
  read_join(join, config, locations);
  return config;
}

Config load_cluster(const std::filesystem::path& file) {
  Locations locations(file.string());
  Config config = read_config(read_document(file, locations), locations);
  resolve_nodes(config, locations);
  return config;
}

Config parse_cluster(const std::string& text, const std::filesystem::path& file) {
  Locations locations(file.string());
  return read_config(parse_document(text, locations), locations);
}

}  // namespace dpwa
