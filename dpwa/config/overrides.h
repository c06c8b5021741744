#pragma once

#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

// DPWA_NAME, or nothing when unset or empty.
std::string name_from_environment();

// Apply DPWA_HOST, DPWA_PORT, DPWA_BIND to the own node, and DPWA_LOG_LEVEL; empty variables count
// as unset. Throw ConfigError "environment: DPWA_PORT: ...".
void apply_endpoint_variables(Config& config, Locations& locations);
void apply_log_variables(Config& config, Locations& locations);

}  // namespace dpwa::config
