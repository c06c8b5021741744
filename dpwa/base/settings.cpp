#include "dpwa/base/settings.h"

#include <algorithm>
#include <string_view>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/random.h"

namespace dpwa {
namespace {

constexpr std::string_view not_stated = "not stated";

std::string_view value_in(const Settings& settings, const std::string& name) {
  const auto found = std::ranges::find(settings, name, &Settings::value_type::first);
  return found == settings.end() ? not_stated : std::string_view(found->second);
}

}  // namespace

std::string SettingDifference::words(const std::string& own_place,
                                     const std::string& other_place) const {
  const auto shown = [](const std::string& text) {
    return to_plain_text(text, max_setting_value_bytes);
  };
  return shown(name) + ": " + shown(own) + " " + own_place + " and " + shown(other) + " " +
         other_place;
}

std::vector<SettingDifference> differences(const Settings& own, const Settings& other) {
  std::vector<SettingDifference> found;
  for (const auto& [name, value] : own) {
    const std::string_view there = value_in(other, name);
    if (there != value) found.push_back({name, value, std::string(there)});
  }
  for (const auto& [name, value] : other) {
    const std::string_view here = value_in(own, name);
    if (here == not_stated && value != here) found.push_back({name, std::string(here), value});
  }
  return found;
}

std::string on_node(const std::string& name) {
  return "on '" + name + "'";
}

std::optional<std::string> first_difference(const StatedSettings& own,
                                            const StatedSettings& other) {
  if (own.settings.empty() || other.settings.empty()) return std::nullopt;
  const auto found = differences(own.settings, other.settings);
  if (found.empty()) return std::nullopt;
  return found.front().words(on_node(own.by), on_node(other.by));
}

std::string setting_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  if (all.size() <= max_setting_value_bytes) return all;
  return std::to_string(names.size()) + " names with digest " + std::to_string(hash_of(all));
}

}  // namespace dpwa
