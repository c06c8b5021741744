#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include "dpwa/base/time.h"

namespace dpwa {

// Whether text from a peer or a file is safe to show in a log or on a terminal: it is valid UTF-8
// without control characters (U+0000-001F, U+007F-009F), without the line separators U+2028 and
// U+2029, and without characters that change the direction of text or are invisible (those with the
// Unicode property Default_Ignorable_Code_Point, such as U+00AD, U+200B, U+202E and U+FEFF, and
// U+FFF9-FFFB).
bool is_plain_text(std::string_view text);

// `text` with every other byte sequence replaced by '?', cut to at most `max_bytes` between
// characters.
std::string to_plain_text(std::string_view text, std::size_t max_bytes);

// `text` with every byte that is not plain written as "\xNN", so that a message that quotes it
// stays one line, in which nothing is hidden.
std::string one_line(std::string_view text);

// The error of a program in one line: "out of memory" for std::bad_alloc, else the first line of
// what() (LibTorch appends a stack trace), with the limit of descriptors where that was reached.
std::string one_line(const std::exception& error);

// Such as "2.5 s".
std::string in_seconds(Duration time);

}  // namespace dpwa
