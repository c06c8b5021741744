#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

class Field;

// The list `seeds`: HOST or HOST:PORT, by which processes that no file lists find one another. Pods
// of Kubernetes have a port of their own each, so that all can take the same one.
inline constexpr std::uint16_t seed_port = 24000;

std::vector<NodeEntry> read_seeds(const Field& list);
// "HOST:PORT" of each.
std::vector<std::string> texts_of(const std::vector<NodeEntry>& seeds);
// The hosts of the seeds as they are known now; a name that is not known yet is a line in the log,
// and resolved again later.
void resolve_seeds(Config& config, const Locations& locations);

// Throws ConfigError where seeds stand in for the list of nodes, and other settings need that.
void check_seeds(const Config& config, const Locations& locations);

// Makes this process a node of a file that lists none: under Config::self, or the name of this
// host; at DPWA_HOST, or the address by which it reaches a seed; at the port that a launcher has
// given it, DPWA_PORT, or seed_port. Throws ConfigError for settings that need a list of nodes.
void add_self_by_seeds(Config& config, Locations& locations);

}  // namespace dpwa::config
