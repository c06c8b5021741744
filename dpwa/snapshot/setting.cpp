#include "dpwa/snapshot/setting.h"

#include <string_view>
#include <utility>

namespace dpwa {
namespace {

constexpr std::string_view of_setting = "setting: ";
Settings stated_in(const Manifest& manifest, bool as_settings) {
  Settings stated;
  for (const TensorSpec& tensor : manifest.tensors()) {
    auto mark = mark_of(tensor);
    if (!mark || is_setting(tensor) != as_settings) continue;
    if (as_settings) mark->what.erase(0, of_setting.size());
    stated.emplace_back(std::move(mark->what), std::move(mark->value));
  }
  return stated;
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

Settings settings_of(const Manifest& manifest) {
  return stated_in(manifest, /*as_settings=*/true);
}

Settings marks_of(const Manifest& manifest) {
  return stated_in(manifest, /*as_settings=*/false);
}

}  // namespace dpwa
