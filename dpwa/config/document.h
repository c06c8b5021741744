#pragma once

#include <yaml-cpp/yaml.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "dpwa/config/locations.h"

namespace dpwa::config {

inline constexpr std::size_t max_file_bytes = 4 << 20;

// How long to wait for a cluster file that is a pipe. A program that reads its file again must not
// wait for ever, and a program that starts should report what it waits for.
struct PipePatience {
  std::chrono::milliseconds for_writer{2000};  // while no process has opened it for writing
  std::chrono::milliseconds for_text{10000};   // for the next bytes, while a process has it open
  std::chrono::milliseconds for_all{60000};    // from the beginning to the end of the text
};

// For a program that reads its file again between two steps. Such a short pause is not noticeable.
inline constexpr PipePatience reload_patience{
    std::chrono::milliseconds(0), std::chrono::milliseconds(50), std::chrono::milliseconds(50)};

// The text of the file, or its first max_file_bytes + 1 bytes. A pipe is read until it has no
// writers, so /dev/stdin and <(...) of a shell work too. Throws ConfigError.
std::string read_cluster_text(const std::filesystem::path& file, const Locations& locations,
                              const PipePatience& patience = {});

// The text without its byte order mark. Throws ConfigError where that is the one of UTF-16.
std::string in_utf8(std::string text, const Locations& locations);

// Reads and parses the file: one YAML document of at most max_file_bytes. Throws ConfigError, with
// the line when the fault is in the YAML. Places the nulls that are written out.
YAML::Node read_document(const std::filesystem::path& file, Locations& locations,
                         const PipePatience& patience = {});
// The same for a text.
YAML::Node parse_document(std::string text, Locations& locations);

}  // namespace dpwa::config
