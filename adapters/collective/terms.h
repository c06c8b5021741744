#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa::collective {

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

}  // namespace dpwa::collective
