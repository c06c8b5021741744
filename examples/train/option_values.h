#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "dpwa/config/text.h"
#include "examples/train/choices.h"

// Options of the example programs, with one way to refuse a value.
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
    const auto value = parse_whole(text);
    if (!value || *value < low || *value > high) return false;
    target = *value;
    return true;
  };
}

inline Accept positive(double& target) {
  return [&target](const std::string& text) {
    const auto value = parse_number(text);
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
    const auto value = parse_number(text);
    if (!value || *value < 0 || *value > 3.6e6) return false;
    target = std::chrono::nanoseconds(static_cast<std::int64_t>(*value * 1e6));
    return true;
  };
}

}  // namespace dpwa::train
