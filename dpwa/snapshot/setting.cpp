#include "dpwa/snapshot/setting.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace dpwa {
namespace {

constexpr std::string_view of_setting = "setting: ";
constexpr const char* not_stated = "nothing";

// In the order in which they were stated.
std::vector<Mark> settings_of(const Manifest& manifest) {
  std::vector<Mark> settings;
  for (const TensorSpec& tensor : manifest.tensors()) {
    if (!is_setting(tensor)) continue;
    const Mark mark = *mark_of(tensor);
    settings.push_back({mark.what.substr(of_setting.size()), mark.value});
  }
  return settings;
}

const Mark* find(const std::vector<Mark>& settings, const std::string& name) {
  const auto found = std::ranges::find(settings, name, &Mark::what);
  return found == settings.end() ? nullptr : &*found;
}

}  // namespace

Mark setting_mark(const std::string& name, const std::string& value) {
  return {std::string(of_setting) + name, value};
}

bool is_setting(const TensorSpec& tensor) {
  const auto mark = mark_of(tensor);
  return mark && mark->what.starts_with(of_setting);
}

std::vector<TensorSpec> without_settings(std::vector<TensorSpec> tensors) {
  std::erase_if(tensors, is_setting);
  return tensors;
}

std::vector<SettingDifference> setting_differences(const Manifest& own, const Manifest& other) {
  const std::vector<Mark> here = settings_of(own), there = settings_of(other);
  std::vector<SettingDifference> differences;
  for (const Mark& setting : here) {
    const Mark* theirs = find(there, setting.what);
    const std::string value = theirs != nullptr ? theirs->value : not_stated;
    if (value != setting.value) differences.push_back({setting.what, setting.value, value});
  }
  for (const Mark& setting : there) {
    if (find(here, setting.what) == nullptr)
      differences.push_back({setting.what, not_stated, setting.value});
  }
  return differences;
}

}  // namespace dpwa
