#pragma once

#include <optional>
#include <string>

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

}  // namespace dpwa
