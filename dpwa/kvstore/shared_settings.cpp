#include "dpwa/kvstore/shared_settings.h"

#include <algorithm>

#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {
namespace {

std::string value_of(const std::string& setting, const SharedSettings& settings) {
  const auto found = std::ranges::find(settings, setting,
                                       [](const auto& each) -> const auto& { return each.first; });
  return found == settings.end() ? "not stated" : found->second;
}

}  // namespace

std::optional<std::string> difference(const StatedSettings& one, const StatedSettings& other) {
  if (one.settings.empty() || other.settings.empty()) return std::nullopt;
  SharedSettings all = one.settings;
  all.insert(all.end(), other.settings.begin(), other.settings.end());
  for (const auto& [setting, value] : all) {
    const std::string here = value_of(setting, one.settings);
    const std::string there = value_of(setting, other.settings);
    if (here == there) continue;
    return setting + " is '" + there + "' at '" + other.by + "' and '" + here + "' at '" + one.by +
           "'; accepted: the same at all nodes and servers";
  }
  return std::nullopt;
}

std::string setting_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  if (all.size() <= max_setting_value_bytes) return all;
  return std::to_string(names.size()) + " names with digest " + std::to_string(Key(all).hash());
}

}  // namespace dpwa::kvstore
