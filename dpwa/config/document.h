#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <string>

#include "dpwa/config/cluster_text.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

inline constexpr std::size_t max_file_bytes = 4 << 20;

// Reads and parses the file: one YAML document of at most max_file_bytes. Throws ConfigError, with
// the line when the fault is in the YAML.
YAML::Node read_document(const std::filesystem::path& file, const Locations& locations,
                         const PipePatience& patience = {});
// The same for text that is at hand.
YAML::Node parse_document(std::string text, const Locations& locations);

}  // namespace dpwa::config
