#pragma once

#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

// What the command line and the environment say of the own node.

// DPWA_NAME, or nothing when unset or empty.
std::string name_from_environment();

// Apply DPWA_HOST, DPWA_PORT, DPWA_BIND to the own node, and DPWA_LOG_LEVEL; empty variables count
// as unset. Throw ConfigError "environment: DPWA_PORT: ...".
void apply_endpoint_variables(Config& config, Locations& locations);
void apply_log_variables(Config& config, Locations& locations);

// Adds the node `name` to those of the file when it is none of them; DPWA_HOST, DPWA_PORT and
// DPWA_BIND say where it is. Throws ConfigError when DPWA_PORT is not set.
void add_joiner(Config& config, const std::string& name, Locations& locations);

// Reads and resolves each HOST:PORT. Throws ConfigError.
void read_join(const std::vector<std::string>& join, Config& config, Locations& locations);

}  // namespace dpwa::config
