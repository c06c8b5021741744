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

// Whether so many nodes can ever run: in a closed cluster those of the file alone do.
bool may_run(const Config& config, std::uint64_t nodes);
// Why not, as the beginning of a message: "5 nodes, where the file has 3 and ...".
std::string unreachable_count(const Config& config, std::uint64_t nodes);

}  // namespace dpwa::config
