#pragma once

#include <functional>

#include "dpwa/config/config.h"

namespace dpwa {

// Where a launcher may stand in for --name and for the nodes of the file. Called when no name was
// given: sets `self`, and `nodes` where the file lists none; leaves both where no launcher has
// started this process. What it throws leaves the load_config() that called it.
using Launcher = std::function<void(Config& config)>;

// load_config() and reload_config() of a program that a launcher may have started.
Config load_config(const std::filesystem::path& file, const std::string& name,
                   const std::vector<std::string>& join, const Launcher& launcher);
Config reload_config(const std::filesystem::path& file, const std::string& name,
                     const std::vector<std::string>& join, const Launcher& launcher);

// load_cluster() of a file that may leave `nodes` to a launcher: there are none in the result then.
Config load_launchable(const std::filesystem::path& file);

}  // namespace dpwa
