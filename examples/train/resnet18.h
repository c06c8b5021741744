#pragma once

#include <memory>

#include "examples/train/models.h"

namespace dpwa::train {

// Random weights from the current default generator.
std::shared_ptr<Classifier> make_resnet18(const Dataset& data);

}  // namespace dpwa::train
