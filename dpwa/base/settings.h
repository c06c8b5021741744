#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dpwa {

// Settings that processes state to one another, by name and as text, in an order of their own.
using Settings = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::size_t max_setting_value_bytes = 512;

// A setting with another value elsewhere; "not stated" where there is none of its name.
struct SettingDifference {
  std::string name, own, other;

  // "--seed: 1 on 'w1' and 2 on 'w2'", of places such as "on 'w1'". Plain text of bounded length,
  // because words of a peer must not look like another line of the log.
  std::string words(const std::string& own_place, const std::string& other_place) const;
};

// All of them: in the order of `own`, then those that only `other` states.
std::vector<SettingDifference> differences(const Settings& own, const Settings& other);

std::string on_node(const std::string& name);  // "on 'w1'"

struct StatedSettings {
  const std::string& by;  // the name of a process
  const Settings& settings;
};

// The first difference in words; none: they agree, or one of them states nothing.
std::optional<std::string> first_difference(const StatedSettings& own, const StatedSettings& other);

// A list of names as the value of a setting: the names themselves if they are few, else their
// number and a digest.
std::string setting_of(const std::vector<std::string>& names);

}  // namespace dpwa
