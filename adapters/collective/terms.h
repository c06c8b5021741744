#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa::collective {

struct MemberView;

// Settings that must be the same on all nodes of a group: name and text.
using Terms = std::vector<std::pair<std::string, std::string>>;

// The nodes of the file in their order, which determines their ranks.
Terms file_terms(const Config& config);
// Settings under `collective` that shape the exchange.
Terms settings_terms(const CollectiveConfig& config);
// The first setting in which two nodes differ, as in "--seed: 2 there, 1 here"; empty: none, or one
// of the two has not stated any.
std::string difference(const Terms& there, const Terms& here);
// The same for the nodes in the file only: with other nodes, positions and ranks have another
// meaning.
std::string difference_of_files(const Terms& there, const Terms& here);

// Nodes that keep the first group from forming, with reasons, as in "'w2' (not running)"; empty:
// none.
std::string missing_in(const std::vector<MemberView>& views);

// A node with which the one at `self` can never form its first group, with the reason, as in
// "'w2' differs: --seed: 1 there, 2 here"; empty: none among those that have answered. If a group
// trains, only its members count, because it does not admit other nodes that answer.
std::string stranger_in(const std::vector<MemberView>& views, std::size_t self);

}  // namespace dpwa::collective
