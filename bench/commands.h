#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dpwa::bench {

// Options that take a size ("100MB", "64MiB") or a count ("10M"), above zero.
CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& target,
                             const std::string& description);
CLI::Option* add_count_option(CLI::App& app, const std::string& name, std::uint64_t& target,
                              const std::string& description);

}  // namespace dpwa::bench
