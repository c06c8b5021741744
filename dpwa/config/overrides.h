#pragma once

#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

// DPWA_NAME, or nothing when unset or empty.
std::string name_from_environment();

// Applies DPWA_HOST, DPWA_PORT, DPWA_BIND to the own node and DPWA_LOG_LEVEL; empty variables count
// as unset. Throws ConfigError "environment: DPWA_PORT: ...".
void apply_environment(Config& config, Locations& locations);

}  // namespace dpwa::config
