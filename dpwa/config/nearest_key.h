#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dpwa::config {

// The candidate nearest to `word` by Levenshtein distance (a swap of neighbours counts one), empty
// when none is near enough to be meant: at most a third of the longer word, and at least one edit
// allowed. Letter case, '-' and '_' do not count. The first of equals wins.
std::string nearest_key(std::string_view word, const std::vector<std::string>& candidates);

// " did you mean 'x'?" or nothing.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace dpwa::config
