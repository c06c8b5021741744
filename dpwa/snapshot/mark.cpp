#include "dpwa/snapshot/mark.h"

#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/random.h"

namespace dpwa {
namespace {

constexpr std::string_view prefix = "mark: ";
constexpr std::string_view between = " = ";
constexpr std::string_view of_setting = "setting: ";
constexpr std::size_t most_of_value = 160;  // bytes, as plain text

std::string shown(const std::string& value) {
  std::string text = to_plain_text(value, most_of_value);
  if (text != value) text += ", hash " + std::to_string(hash_of(value));
  return text;
}

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

Manifest with_mark(const Manifest& manifest, const Mark& mark) {
  if (manifest.regions().empty()) throw std::invalid_argument("there is no model to mark");
  // In the last region, as any other place could move what lies behind it.
  const Region& last = manifest.regions().back();
  std::vector<TensorSpec> tensors = manifest.tensors();
  for (const TensorSpec& tensor : tensors) {
    const auto other = mark_of(tensor);
    if (other && other->what == mark.what)
      throw std::invalid_argument("the model has a mark for '" + mark.what + "' already");
  }
  tensors.push_back({std::string(prefix) + mark.what + std::string(between) + shown(mark.value),
                     last.dtype,
                     last.rule,
                     {0}});
  return Manifest(std::move(tensors));
}

std::optional<Mark> mark_of(const TensorSpec& tensor) {
  const std::string_view name = tensor.name;
  const auto at = name.find(between);
  if (!name.starts_with(prefix) || at == std::string_view::npos || tensor.elements() != 0)
    return std::nullopt;
  return Mark{std::string(name.substr(prefix.size(), at - prefix.size())),
              std::string(name.substr(at + between.size()))};
}

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
