#pragma once

#include <CLI/App.hpp>
#include <string>

namespace dpwa::cli {

// The options of every command that asks the processes of a cluster file.
inline void add_asking_options(CLI::App& command, std::string& file, std::string& name) {
  command.add_option("FILE,--config", file, "The cluster file")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  command.add_option("--name", name,
                     "What {name} in the paths of the security section stands for (default: the "
                     "first node whose files can be read here)");
}

}  // namespace dpwa::cli
