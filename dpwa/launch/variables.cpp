#include "dpwa/launch/variables.h"

#include <charconv>

#include "dpwa/config/config.h"
#include "dpwa/config/text.h"

namespace dpwa::launch {

void Variables::fail(const std::string& name, const std::string& problem) {
  throw ConfigError("environment: " + name + ": " + problem);
}

std::optional<int> Variables::number(const std::string& name, int low, int high) const {
  const std::string value = text(name);
  if (value.empty()) return std::nullopt;
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [read, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || read != end || number < low || number > high) {
    fail(name, config::shown(value) + " is not accepted; accepted: a whole number from " +
                   std::to_string(low) + " to " + std::to_string(high));
  }
  return number;
}

int Variables::need_number(const std::string& name, int low, int high,
                           const std::string& because) const {
  const auto value = number(name, low, high);
  if (!value) fail(name, "not set, " + because);
  return *value;
}

std::string Variables::need_text(const std::string& name, const std::string& because) const {
  std::string value = text(name);
  if (value.empty()) fail(name, "not set, " + because);
  return value;
}

}  // namespace dpwa::launch
