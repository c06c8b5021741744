#pragma once

#include <string>
#include <vector>

#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvserver {

// The changes from one epoch to the next, one line each: which workers and servers take part and
// which no longer do. Pure.
std::vector<std::string> words_for_change(const kvstore::Epoch& before,
                                          const kvstore::Epoch& after);

// Of servers that were all started again, with values that nobody else has; `names` is not empty.
std::string words_for_lost(const std::vector<std::string>& names);

}  // namespace dpwa::kvserver
