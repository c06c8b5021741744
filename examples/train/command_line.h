#pragma once

#include <CLI/CLI.hpp>
#include <boost/algorithm/string/join.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "dpwa/base/numbers.h"
#include "dpwa/base/version.h"
#include "dpwa/cli/usage.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/names.h"
#include "dpwa/config/text.h"
#include "examples/train/options.h"

// The command lines of the example programs, with one way to refuse a value.
namespace dpwa::train {

// The option stores what `parse` makes of its text: an optional value, none when the text is not
// accepted. `accepted` is also the type that the help shows; `bounds`: what it leaves open, for the
// error.
template <class Value, class Parse>
CLI::Option* add(CLI::App& app, const std::string& name, const std::string& accepted,
                 const std::string& description, Value& target, Parse parse,
                 const std::string& bounds = "") {
  const auto store = [&target, name, accepted, bounds, parse](const std::string& text) {
    const auto value = parse(text);
    if (!value)
      throw CLI::ValidationError(
          name, config::shown(text) + " is not accepted; accepted: " + accepted + bounds);
    target = *value;
  };
  return app.add_option_function<std::string>(name, store, description)->type_name(accepted);
}

// One of the words.
template <class Value, std::size_t count>
CLI::Option* add(CLI::App& app, const std::string& name, const config::Word<Value> (&words)[count],
                 const std::string& description, Value& target) {
  const auto parse = [&words](const std::string& text) -> std::optional<Value> {
    for (const auto& word : words)
      if (text == word.name) return word.value;
    return std::nullopt;
  };
  const auto accepted = boost::algorithm::join(config::names_in(words), "|");
  return add(app, name, accepted, description, target, parse);
}

inline auto whole(std::uint64_t low,
                  std::uint64_t high = std::numeric_limits<std::uint64_t>::max()) {
  return [low, high](const std::string& text) {
    const auto value = number_in<std::uint64_t>(text);
    return value && *value >= low && *value <= high ? value : std::nullopt;
  };
}

inline std::optional<double> positive(const std::string& text) {
  const auto value = config::parse_number(text);
  return value && *value > 0 ? value : std::nullopt;
}

// A path or a name.
inline std::optional<std::string> some(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// What every program has. `launchers`: where the name may also come from.
inline void add_common_options(CLI::App& app, std::filesystem::path& config, std::string& node,
                               const std::string& launchers) {
  cli::format_help(app);
  app.set_version_flag("--version", app.get_name() + " " + std::string(version()) +
                                        " (back ends: " + available_backends() + ")");
  add(app, "--config", "FILE", "Cluster file", config, some)->required();
  add(app, "--name", "NODE", "This node's name in it; default $DPWA_NAME, else from " + launchers,
      node, some);
}

template <class Options>
Parsed<Options> refuse(const CLI::App& app, const std::string& why) {
  return {false, {}, app.get_name() + ": " + why + "\n", 2};
}

// Parses the command line into `parsed.options`, which the options of `app` refer to. Whether the
// program is to run.
template <class Options>
bool parse(CLI::App& app, int argc, const char* const* argv, Parsed<Options>& parsed) {
  try {
    app.parse(argc, argv);
    parsed.run = true;
  } catch (const CLI::CallForHelp&) {
    parsed.text = app.help();
  } catch (const CLI::CallForVersion& wanted) {
    parsed.text = std::string(wanted.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    parsed = refuse<Options>(
        app, cli::usage_problem(app, error) + " (see " + app.get_name() + " --help)");
  }
  return parsed.run;
}

}  // namespace dpwa::train
