#include "bench/commands.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <optional>
#include <string>

#include "bench/quantity.h"

namespace dpwa::bench {
namespace {

using Parse = std::function<std::optional<std::uint64_t>(std::string_view)>;

CLI::Option* add_parsed(CLI::App& app, const std::string& name, std::uint64_t& target,
                        const std::string& description, const Parse& parse,
                        const std::string& accepted) {
  const auto take = [&target, name, parse, accepted](const std::string& text) {
    const auto value = parse(text);
    if (!value) throw CLI::ValidationError(name, "'" + text + "' is not " + accepted);
    target = *value;
  };
  return app.add_option_function<std::string>(name, take, description);
}

}  // namespace

CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& target,
                             const std::string& description) {
  return add_parsed(app, name, target, description, parse_size,
                    "a size such as 200, 10KB, 100MB (powers of 1000) or 64MiB (of 1024)")
      ->type_name("SIZE")
      ->default_str(size_text(target));
}

CLI::Option* add_count_option(CLI::App& app, const std::string& name, std::uint64_t& target,
                              const std::string& description) {
  return add_parsed(app, name, target, description, parse_count, "a count such as 500, 100k, 10M")
      ->type_name("COUNT")
      ->default_str(std::to_string(target));
}

}  // namespace dpwa::bench
