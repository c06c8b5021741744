#pragma once

#include <map>
#include <string>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/collective/signature.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_node.h"
#include "dpwa/members/group_members.h"

namespace dpwa::collective {

using members::GroupMembers;

// Terms: settings that must be the same on all nodes of a group.

// The nodes of the file in their order, which determines their ranks, and the name of the engine
// that connects them. They come first: nodes that differ in these cannot form a group at all.
Settings file_terms(const Config& config, const std::string& engine);

// Parameters and buffers as one number, for nodes that have not met yet: those that form a group
// compare each tensor.
Settings::value_type model_term(const std::vector<Signature::Entry>& tensors);

// Nodes that keep a group from forming, with reasons, as in "'w2' (not running)"; empty: none.
std::string missing_in(const group::GroupNode::State& state);

// Why those that are left of the view of this node may not go on as the group; empty: they may, or
// it is not known yet.
std::string minority_in(const group::GroupNode::State& state);

// The first of these members that is gone, and how, as in "'w2' has left" or "'w2' is no longer
// running"; empty: none is known. One that leaves says so itself.
std::string gone_in(const group::GroupNode::State& state, const GroupMembers& members);

// A node with which this one can never form its first group, with the reason, as in "'w2' differs:
// --seed: 1 on 'w1' and 2 on 'w2'" or another key; empty: none is known. If a group trains, only
// its members count, because it does not admit other nodes that answer. `backends`: of nodes that
// do not speak to this one, where they say it. `waited`: for so long that others would have spoken.
std::string stranger_in(const group::GroupNode::State& state,
                        const std::map<std::string, std::string>& backends, bool waited);

}  // namespace dpwa::collective
