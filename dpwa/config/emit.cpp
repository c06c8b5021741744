#include <yaml-cpp/yaml.h>

#include <optional>

#include "dpwa/config/config.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/nodes.h"
#include "dpwa/config/text.h"

namespace dpwa {
namespace {

using config::Key;
using config::KeySection;

bool has_values(const KeySection& section, const Config& config) {
  for (const Key& key : section.keys) {
    if (key.print(config)) return true;
  }
  return false;
}

void print_key(YAML::Emitter& out, const Key& key, const Config& config) {
  const std::optional<std::string> value = key.print(config);
  if (!value) return;
  out << YAML::Key << key.name << YAML::Value;
  if (key.quoted) out << YAML::DoubleQuoted;
  out << *value;
}

void print_keys(YAML::Emitter& out, const KeySection& section, const Config& config) {
  for (const Key& key : section.keys) {
    print_key(out, key, config);
    if (config::path_of(section, key) == "nodes" && !config.nodes.empty()) {  // a launcher's else
      out << YAML::Key << key.name << YAML::Value;
      config::print_nodes(out, config.nodes);
    }
    if (config::path_of(section, key) == "interpolation.method") {
      for (const auto& [name, value] : config.interpolation.parameters)
        out << YAML::Key << name << YAML::Value << config::number_text(value);
    }
  }
  for (const KeySection* inner : config::sections_in(section)) {
    if (!has_values(*inner, config)) continue;
    out << YAML::Key << config::leaf_of(*inner) << YAML::Value;
    if (inner->layout == config::Layout::flow) out << YAML::Flow;
    out << YAML::BeginMap;
    print_keys(out, *inner, config);
    out << YAML::EndMap;
  }
}

}  // namespace

std::string to_yaml(const Config& config) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  print_keys(out, config::section_at(""), config);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace dpwa
