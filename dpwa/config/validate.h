#pragma once

#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

// Checks that look at more than one value. All throw ConfigError.

void check_names(const Config& config, const Locations& locations);
// Throws when no node is called `name`, listing those there are.
void check_own_name(const Config& config, const std::string& name, const Locations& locations);

// Resolves every host into NodeEntry::addresses and bind_address (unresolvable: refused), then
// refuses two nodes at one endpoint, and listening beyond loopback without an explicit `security`.
void resolve_nodes(Config& config, const Locations& locations);

}  // namespace dpwa::config
