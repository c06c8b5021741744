#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa::collective {

// What has to be the same on all nodes of a group: by name, as they write it.
using Terms = std::vector<std::pair<std::string, std::string>>;

// The nodes of the file in their order, by which they have ranks.
Terms file_terms(const Config& config);
// Settings under `collective` that shape the exchange.
Terms settings_terms(const CollectiveConfig& config);
// The first of them in which two nodes differ, such as "--seed: 2 there, 1 here"; empty: none, or
// one of the two says nothing.
std::string difference(const Terms& there, const Terms& here);
// The same of the nodes in the file alone: with others, places and ranks mean something else.
std::string difference_of_files(const Terms& there, const Terms& here);

}  // namespace dpwa::collective
