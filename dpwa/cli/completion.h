#pragma once

#include <string>

namespace CLI {
class App;
}

namespace dpwa::cli {

// A script for bash that completes the command line of `app` and of the programs beside it. It is
// made from the parser's own options; of the other programs the script asks --help as it runs.
std::string bash_completion(const CLI::App& app);
// The same for zsh, by its emulation of bash's completion.
std::string zsh_completion(const CLI::App& app);

}  // namespace dpwa::cli
