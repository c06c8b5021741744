#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/time.h"

namespace dpwa::config {

// A value for an error line: in single quotes, as one_line() writes it, cut after 60 bytes.
std::string shown(std::string_view value);

// Whether a character is one that a terminal obeys: U+0000 to U+001F, U+007F to U+009F.
constexpr bool is_control(std::uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
}
bool has_control(std::string_view utf8);  // other than a tab

// "a, b, c"
std::string joined(const std::vector<std::string>& words);

// Shortest text that reads back to the same number; whole ones up to 10^15 with all their digits.
std::string number_text(double value);

// The candidate nearest to `word` by Levenshtein distance (a swap of neighbours counts one). Empty
// when none is near enough: a third of the longer word may differ, and at least one letter. Letter
// case, '-' and '_' do not count. The first of equally near candidates wins.
std::string nearest_key(std::string_view word, const std::vector<std::string>& candidates);

// " did you mean 'x'?" or nothing.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

// "'x' is unknown, did you mean 'y'? accepted: y, z"
std::string unknown_word(std::string_view word, const std::vector<std::string>& accepted);

// "1 node", "2 nodes"
std::string counted(std::size_t count, std::string_view noun);

// Numbers, durations and sizes as text. Each parse takes the whole text or gives nothing; NaN and
// infinity are no numbers.
std::optional<double> parse_number(std::string_view text);

// "500ms", "2s", "1.5 m"; units us, ms, s, m, h. A bare number counts milliseconds. Rounded to 1
// ns; magnitudes past 1000 hours are clipped to it, signs are kept, so a range check decides.
std::optional<Duration> parse_duration_ms(std::string_view text);

// "512KiB", "64MiB", "1MB", "4096"; units B, KB, MB, GB (powers of 1000), KiB, MiB, GiB (of 1024),
// in either case. A bare number counts bytes. Nothing when it is not a whole number of bytes.
// Negative values and values of 2^53 and more give -1.
std::optional<std::int64_t> parse_size_bytes(std::string_view text);

// Bytes in the largest of B, KiB and MiB of which they are a multiple: "64", "512KiB", "25MiB".
std::string size_text(std::int64_t bytes);

// Milliseconds as a number, exact to 1 ns: "500", "0.25".
std::string milliseconds_text(Duration duration);

}  // namespace dpwa::config
