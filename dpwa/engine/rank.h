#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dpwa/rules/membership.h"

namespace dpwa {

// The place of a node in the order that all nodes agree on: those of the cluster file by name, then
// those that joined by name. A topology names neighbours by it. It stays while nobody joins, leaves
// the table or is added to the file; a node that dies keeps its rank until it is forgotten.
//
// `members`: the table of the node `self`, free places too; `self_is_seed`: the file names it.
std::size_t rank_of(const std::string& name, const std::vector<Member>& members,
                    const std::string& self, bool self_is_seed);

}  // namespace dpwa
