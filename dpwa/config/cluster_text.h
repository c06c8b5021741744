#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "dpwa/config/locations.h"

namespace dpwa::config {

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

}  // namespace dpwa::config
