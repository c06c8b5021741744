#pragma once

#include <string>
#include <vector>

#include "adapters/collective/next_group.h"

namespace dpwa::collective {

// Nodes that keep the first group from forming, with reasons, as in "'w2' (not running)"; empty:
// none.
std::string missing_in(const std::vector<Sight>& sights);

// A node with which the one at `self` can never form its first group, with the reason, as in
// "'w2' differs: --seed: 1 there, 2 here"; empty: none among those that have answered. If a group
// trains, only its members count, because it does not admit other nodes that answer.
std::string stranger_in(const std::vector<Sight>& sights, std::size_t self);

}  // namespace dpwa::collective
