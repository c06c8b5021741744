#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace YAML {
class Emitter;
}

namespace dpwa::config {

class Field;

// The lists `nodes` and `kvstore.servers`: names, endpoints and processors.
std::vector<NodeEntry> read_nodes(const Field& list);
// "HOST:PORT" or "[HOST]:PORT", or a host alone where there is `otherwise` a port, as an entry
// without a name; none: it is no such text.
std::optional<NodeEntry> parse_endpoint(const std::string& text,
                                        std::optional<std::uint16_t> otherwise = std::nullopt);
std::vector<std::string> names_of(const std::vector<NodeEntry>& nodes);
void print_nodes(YAML::Emitter& out, const std::vector<NodeEntry>& nodes);

// Throws ConfigError when two nodes, or servers, have the same name.
void check_names(const Config& config, const Locations& locations);
// Throws when no node is called `name`, listing those there are.
void check_own_name(const Config& config, const std::string& name, const Locations& locations);
// The same of a server.
void check_server_name(const Config& config, const std::string& name, const Locations& locations);
// Throws when no node and no server is called `name`.
void check_process_name(const Config& config, const std::string& name, const Locations& locations);

// The own node, as the command line and the environment describe it.

// In the name that was given: the rank. load_config() asks the launcher for the name then, too.
inline constexpr std::string_view rank_mark = "%r";

// `name`, or else DPWA_NAME; empty when neither is given.
std::string given_name(const std::string& name, Locations& locations);

// Apply DPWA_HOST, DPWA_PORT, DPWA_BIND to the own node or server, and DPWA_LOG_LEVEL; empty
// variables count as unset. Throw ConfigError "environment: DPWA_PORT: ...".
// `with_port`: DPWA_PORT, too.
void apply_endpoint_variables(Config& config, Locations& locations, bool with_port = true);
void apply_log_variables(Config& config, Locations& locations);

// `name` as it was given; throws ConfigError for what is no name.
std::string checked_name(const std::string& name, Locations& locations);

// Adds the node `name` when the file does not have it. DPWA_HOST, DPWA_PORT and DPWA_BIND give its
// endpoint. Throws ConfigError when DPWA_PORT is not set.
void add_joiner(Config& config, const std::string& name, Locations& locations);

// Reads and resolves each HOST:PORT. Throws ConfigError.
void read_join(const std::vector<std::string>& join, Config& config);

}  // namespace dpwa::config
