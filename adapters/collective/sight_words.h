#pragma once

#include <string>
#include <vector>

#include "adapters/collective/next_group.h"

namespace dpwa::collective {

// Nodes that keep the first group from forming, and why, such as "'w2' (not running)"; empty: none.
std::string missing_in(const std::vector<Sight>& sights);

// A node with which the one at `self` can never form its first group, and why, such as
// "'w2' differs: --seed: 1 there, 2 here"; empty: none, as far as all have answered. Where a group
// trains, only its members count: what else answers, it does not take in.
std::string stranger_in(const std::vector<Sight>& sights, std::size_t self);

}  // namespace dpwa::collective
