#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The meaning or the origin of a model's numbers, such as {"data", "float32[60, 3]"}. Nodes
// whose marks differ have different models, and exchange nothing.
struct Mark {
  std::string what, value;
};

// The manifest with this mark behind its tensors, as a tensor without elements: the layout stays,
// and every peer compares it. A value that is too long for a name is cut, with its hash. Throws
// std::invalid_argument for a manifest without tensors, and for a mark that is there.
Manifest with_mark(const Manifest& manifest, const Mark& mark);

// The mark that this tensor stands for, if it stands for one.
std::optional<Mark> mark_of(const TensorSpec& tensor);

// The mark for a setting of the training, such as --lr 0.03: its `what` begins with "setting: ". A
// node with other settings has the same model: both exchange it, with a warning.
Mark setting_mark(const std::string& name, const std::string& value);
bool is_setting(const TensorSpec& tensor);

std::vector<TensorSpec> without_settings(std::vector<TensorSpec> tensors);

// In the order in which they were stated.
Settings settings_of(const Manifest& manifest);
Settings marks_of(const Manifest& manifest);  // that are no settings

}  // namespace dpwa
