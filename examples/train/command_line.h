#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "dpwa/base/numbers.h"
#include "dpwa/base/version.h"
#include "dpwa/cli/usage.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/names.h"
#include "dpwa/config/text.h"
#include "examples/train/options.h"

// The command lines of the example programs, with one way to refuse a value.
namespace dpwa::train {

using Accept = std::function<bool(const std::string&)>;  // stores the value; false = not accepted

// `accepted` is also the type that the help shows; `bounds`: what it leaves open, for the error.
inline CLI::Option* add(CLI::App& app, const std::string& name, const std::string& accepted,
                        const std::string& description, Accept accept,
                        const std::string& bounds = "") {
  const auto check = [name, accepted, bounds,
                      accept = std::move(accept)](const std::string& value) {
    if (!accept(value))
      throw CLI::ValidationError(
          name, config::shown(value) + " is not accepted; accepted: " + accepted + bounds);
  };
  return app.add_option_function<std::string>(name, check, description)->type_name(accepted);
}

// One of the words.
template <class Value, std::size_t count>
CLI::Option* add(CLI::App& app, const std::string& name, const config::Word<Value> (&words)[count],
                 const std::string& description, Value& target) {
  std::string accepted;
  for (const auto& word : words) accepted += (accepted.empty() ? "" : "|") + std::string(word.name);
  return add(app, name, accepted, description, [&words, &target](const std::string& text) {
    for (const auto& word : words)
      if (text == word.name) return target = word.value, true;
    return false;
  });
}

template <typename Value, typename Parse>
Accept choice(Value& target, Parse parse) {
  return [&target, parse](const std::string& text) {
    const auto value = parse(text);
    if (value) target = *value;
    return value.has_value();
  };
}

inline Accept whole(std::uint64_t& target, std::uint64_t low,
                    std::uint64_t high = std::numeric_limits<std::uint64_t>::max()) {
  return [&target, low, high](const std::string& text) {
    const auto value = number_in<std::uint64_t>(text);
    if (!value || *value < low || *value > high) return false;
    target = *value;
    return true;
  };
}

inline Accept positive(double& target) {
  return [&target](const std::string& text) {
    const auto value = config::parse_number(text);
    if (!value || *value <= 0) return false;
    target = *value;
    return true;
  };
}

inline Accept path(std::filesystem::path& target) {
  return [&target](const std::string& text) {
    target = text;
    return !text.empty();
  };
}

inline Accept milliseconds(std::chrono::nanoseconds& target) {
  return [&target](const std::string& text) {
    const auto value = config::parse_number(text);
    if (!value || *value < 0 || *value > 3.6e6) return false;
    target = std::chrono::nanoseconds(static_cast<std::int64_t>(*value * 1e6));
    return true;
  };
}

// What every program has. `launchers`: where the name may also come from.
inline void add_common_options(CLI::App& app, std::filesystem::path& config, std::string& node,
                               const std::string& launchers) {
  cli::format_help(app);
  app.set_version_flag("--version", app.get_name() + " " + std::string(version()) +
                                        " (back ends: " + available_backends() + ")");
  add(app, "--config", "FILE", "Cluster file", path(config))->required();
  add(app, "--name", "NODE", "This node's name in it; default $DPWA_NAME, else from " + launchers,
      [&node](const auto& text) {
        node = text;
        return !text.empty();
      });
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
