#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dpwa/launch/place.h"

namespace dpwa::launch {

// Variables of the environment as numbers, with errors that name them.
class Variables {
 public:
  explicit Variables(const Surroundings& surroundings) : surroundings_(surroundings) {}

  std::string text(const std::string& name) const { return surroundings_.variable(name); }
  bool has(const std::string& name) const { return !text(name).empty(); }
  // None: not set. Throws ConfigError for anything but a whole number of that range.
  std::optional<int> number(const std::string& name, int low, int high) const;
  int need_number(const std::string& name, int low, int high, const std::string& because) const;
  std::string need_text(const std::string& name, const std::string& because) const;

  // Throws ConfigError "environment: NAME: problem".
  [[noreturn]] static void fail(const std::string& name, const std::string& problem);

 private:
  const Surroundings& surroundings_;
};

inline constexpr int most_ranks = 65536;

}  // namespace dpwa::launch
