#pragma once

#include "dpwa/config/config.h"
#include "dpwa/config/field.h"
#include "dpwa/config/section.h"

namespace dpwa::config {

// One reader per section of the cluster file: writes the keys that are given, leaves the others at
// their values, and throws ConfigError for an unknown key, a wrong type or a value out of range.
void read_nodes(const Field& list, std::vector<NodeEntry>& nodes);
void read_gossip(const Section& section, GossipConfig& gossip);
void read_collective(const Section& section, CollectiveConfig& collective);
void read_interpolation(const Section& section, InterpolationConfig& interpolation);
void read_security(const Section& section, SecurityConfig& security);
void read_transport(const Section& section, TransportConfig& transport);
void read_log(const Section& section, LogConfig& log);

// The keys of a section, for suggestions.
const std::vector<std::string>& gossip_keys();
const std::vector<std::string>& collective_keys();
const std::vector<std::string>& transport_keys();

// Values that more than one place of the file may give.
double read_probability(const Field& field);
double read_divergence_threshold(const Field& field);
// A registered method. Throws ConfigError with the names of all.
std::string read_method(const Field& field);
// The parameters of a method, each within the range of the registry. `also_known`: keys of the
// section that are no parameters.
InterpolationParameters read_parameters(const std::string& method, const Section& section,
                                        const std::vector<std::string>& also_known = {});
Backend read_backend(const Field& field);
std::string read_log_level(const Field& field);
std::string read_host(const Field& field);
std::uint16_t read_port(const Field& field);

}  // namespace dpwa::config
