#pragma once

#include <memory>
#include <optional>

#include "adapters/collective/engine/process_group.h"

namespace dpwa::collective {

// Forms a group of some ranks of another one, in whose operations they meet: so all ranks of that
// one call it together. `options`: of the ranks that are in the new group; the others get null.
// By the engine of that one, or `auto` where a launcher has connected it. Throws CollectiveError.
std::unique_ptr<ProcessGroup> form_within(const ProcessGroup& all,
                                          const std::optional<GroupOptions>& options);

}  // namespace dpwa::collective
