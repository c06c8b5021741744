#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/config/field.h"

namespace dpwa::config {

// The list `nodes`: names, endpoints and processors. Not in the table of keys.
void read_nodes(const Field& list, std::vector<NodeEntry>& nodes);
void print_nodes(YAML::Emitter& out, const std::vector<NodeEntry>& nodes);

std::string read_host(const Field& field);
std::uint16_t read_port(const Field& field);

}  // namespace dpwa::config
