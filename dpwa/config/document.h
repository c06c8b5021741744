#pragma once

#include <yaml-cpp/yaml.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "dpwa/config/locations.h"

namespace dpwa::config {

inline constexpr std::size_t max_file_bytes = 4 << 20;

// How long a cluster file that is a pipe is waited for. A program that reads its file again must
// not stand still for ever, and one that starts should say what it waits for.
struct PipePatience {
  std::chrono::milliseconds for_writer{2000};  // to open it, while nobody has
  std::chrono::milliseconds for_text{10000};   // for the next bytes, while somebody has
  std::chrono::milliseconds for_all{60000};    // from the beginning to the end of the text
};

// Of a program that reads its file again between two steps: nobody notices so short a stop.
inline constexpr PipePatience reload_patience{
    std::chrono::milliseconds(0), std::chrono::milliseconds(50), std::chrono::milliseconds(50)};

// The text of the file, or its first max_file_bytes + 1. A pipe is read until its writers are gone,
// so /dev/stdin and a shell's <(...) do as well. Throws ConfigError.
std::string read_cluster_text(const std::filesystem::path& file, const Locations& locations,
                              const PipePatience& patience = {});

// Reads and parses the file: one YAML document of at most max_file_bytes. Throws ConfigError, with
// the line when the fault is in the YAML.
YAML::Node read_document(const std::filesystem::path& file, const Locations& locations,
                         const PipePatience& patience = {});
// The same for text that is at hand.
YAML::Node parse_document(std::string text, const Locations& locations);

}  // namespace dpwa::config
