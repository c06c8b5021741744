#pragma once

#include <memory>
#include <optional>

#include "dpwa/collective/step_group.h"

namespace dpwa::collective {

// Forms a group of some ranks of another one, in whose operations they meet: so all ranks of that
// one call it together. `options`: of the ranks that are in the new group; the others get null.
// Throws CollectiveError.
std::unique_ptr<StepGroup> form_within(const StepGroup& all, const Connector& connector,
                                       const std::optional<GroupOptions>& options);

}  // namespace dpwa::collective
