#pragma once

#include <string>
#include <vector>

#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvserver {

// The changes from one epoch to the next, one line each: which workers and servers take part and
// which no longer do. Pure.
std::vector<std::string> words_for_change(const kvstore::Epoch& before,
                                          const kvstore::Epoch& after);

}  // namespace dpwa::kvserver
