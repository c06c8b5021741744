#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dpwa::kvstore {

// What all processes of a run have to agree on: names of settings, and their values as text. Each
// process states its own when it joins, and a server compares them. Empty: nothing is stated, and
// nothing compared.
using SharedSettings = std::vector<std::pair<std::string, std::string>>;

// As the wire carries them.
inline constexpr std::size_t max_shared_settings = 16;
inline constexpr std::size_t max_setting_bytes = 64;
inline constexpr std::size_t max_setting_value_bytes = 512;

struct StatedSettings {
  std::string by;  // the name of a process
  SharedSettings settings{};
};

// One line that names the first setting that differs, both values and both processes; none: they
// agree, or one of them states nothing.
std::optional<std::string> difference(const StatedSettings& one, const StatedSettings& other);

// A list of names as the value of a setting: the names themselves if they are few, else their
// number and a digest.
std::string setting_of(const std::vector<std::string>& names);

}  // namespace dpwa::kvstore
