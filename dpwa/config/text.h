#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dpwa::config {

// Control characters escaped, so that a message stays one line whatever the file holds.
std::string one_line(std::string_view text);

// A value for an error line: in single quotes, on one line, cut after 60 bytes.
std::string shown(std::string_view value);

// "a, b, c"
std::string joined(const std::vector<std::string>& words);

// Shortest text that reads back to the same number; whole ones up to 10^15 with all their digits.
std::string number_text(double value);

// The candidate nearest to `word` by Levenshtein distance (a swap of neighbours counts one), empty
// when none is near enough to be meant: at most a third of the longer word, and at least one edit
// allowed. Letter case, '-' and '_' do not count. The first of equals wins.
std::string nearest_key(std::string_view word, const std::vector<std::string>& candidates);

// " did you mean 'x'?" or nothing.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace dpwa::config
