#pragma once

#include <string>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/mark.h"

// Settings of the training, such as --lr 0.03. A model states them as marks, but a node with other
// settings has the same model: both exchange it, with a warning.
namespace dpwa {

// The mark for a setting: its `what` begins with "setting: ".
Mark setting_mark(const std::string& name, const std::string& value);
bool is_setting(const TensorSpec& tensor);

std::vector<TensorSpec> without_settings(std::vector<TensorSpec> tensors);

// In the order in which they were stated.
Settings settings_of(const Manifest& manifest);
Settings marks_of(const Manifest& manifest);  // that are no settings

}  // namespace dpwa
