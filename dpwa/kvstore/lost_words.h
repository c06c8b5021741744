#pragma once

#include <string>
#include <vector>

namespace dpwa::kvstore {

// Why a run cannot go on: these servers were started again, and have lost their values. One line,
// which also says what to do.
std::string words_for_lost(const std::vector<std::string>& servers);

}  // namespace dpwa::kvstore
