#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dpwa {

// Whether text from a peer is safe to show in a log or on a terminal: it is valid UTF-8 without
// control characters (U+0000-001F, U+007F-009F), without the line separators U+2028 and U+2029, and
// without characters that change its direction (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069).
bool is_plain_text(std::string_view text);

// `text` with every other byte sequence replaced by '?', cut to at most `max_bytes` between
// characters.
std::string to_plain_text(std::string_view text, std::size_t max_bytes);

}  // namespace dpwa
