#include "dpwa/config/overrides.h"

#include <cstdlib>
#include <optional>

#include "dpwa/config/sections.h"

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
    config.log.level = read_log_level(*field);
  }
}

}  // namespace dpwa::config
