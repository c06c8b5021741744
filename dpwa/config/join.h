#pragma once

#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

// Adds the node `name` to those of the file when it is none of them; DPWA_HOST, DPWA_PORT and
// DPWA_BIND say where it is. Throws ConfigError when DPWA_PORT is not set.
void add_joiner(Config& config, const std::string& name, Locations& locations);

// Reads and resolves each HOST:PORT. Throws ConfigError.
void read_join(const std::vector<std::string>& join, Config& config, Locations& locations);

}  // namespace dpwa::config
