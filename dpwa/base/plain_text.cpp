#include "dpwa/base/plain_text.h"

#include <algorithm>
#include <boost/locale/utf.hpp>

namespace dpwa {
namespace {

namespace utf = boost::locale::utf;

// Reads one character and moves past it; false when it may not be shown.
bool next_is_plain(std::string_view::const_iterator& position,
                   std::string_view::const_iterator end) {
  const utf::code_point c = utf::utf_traits<char>::decode(position, end);
  if (c == utf::illegal || c == utf::incomplete) return false;
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  // Line separators, and characters that change the direction of the text around them (Unicode
  // annex 9).
  const bool steers = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
                      (c >= 0x2066 && c <= 0x2069);
  return !control && !steers;
}

}  // namespace

bool is_plain_text(std::string_view text) {
  for (auto position = text.begin(); position != text.end();) {
    if (!next_is_plain(position, text.end())) return false;
  }
  return true;
}

std::string to_plain_text(std::string_view text, std::size_t max_bytes) {
  std::string plain;
  plain.reserve(std::min(text.size(), max_bytes));
  for (auto position = text.begin(); position != text.end();) {
    const auto start = position;
    const bool good = next_is_plain(position, text.end());
    const std::string_view character = good ? std::string_view(start, position) : "?";
    if (plain.size() + character.size() > max_bytes) break;
    plain += character;
  }
  return plain;
}

}  // namespace dpwa
