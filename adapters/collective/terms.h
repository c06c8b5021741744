#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/config/config.h"

namespace dpwa::collective {

struct MemberView;

// Terms: settings that must be the same on all nodes of a group.

// The nodes of the file in their order, which determines their ranks. They come first: with other
// nodes, positions and ranks have another meaning.
Settings file_terms(const Config& config);
// Settings under `collective` that shape the exchange.
Settings settings_terms(const CollectiveConfig& config);

// Nodes that keep the first group from forming, with reasons, as in "'w2' (not running)"; empty:
// none.
std::string missing_in(const std::vector<MemberView>& views);

// A node with which the one at `self` can never form its first group, with the reason, as in
// "'w2' differs: --seed: 1 on 'w1' and 2 on 'w2'"; empty: none among those that have answered. If a
// group trains, only its members count, because it does not admit other nodes that answer.
std::string stranger_in(const std::vector<MemberView>& views, std::size_t self);

}  // namespace dpwa::collective
