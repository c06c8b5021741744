#include "dpwa/base/plain_text.h"

#include <algorithm>
#include <array>
#include <boost/locale/utf.hpp>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <new>
#include <optional>

namespace dpwa {
namespace {

namespace utf = boost::locale::utf;

struct CodePoints {
  utf::code_point first, last;
};

// In ascending order: controls, characters that steer the direction of the text around them
// (Unicode annex 9), line separators, and characters without an image of their own (annex 44,
// Default_Ignorable_Code_Point).
constexpr CodePoints not_plain[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x034F, 0x034F},   {0x061C, 0x061C},
    {0x115F, 0x1160}, {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},
    {0x2060, 0x206F}, {0x3164, 0x3164},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

// Reads one character and moves past it; false when it may not be shown.
bool next_is_plain(std::string_view::const_iterator& position,
                   std::string_view::const_iterator end) {
  const utf::code_point c = utf::utf_traits<char>::decode(position, end);
  if (c == utf::illegal || c == utf::incomplete) return false;
  if (c >= 0x20 && c < 0x7F) return true;
  const auto* const range = std::ranges::lower_bound(not_plain, c, {}, &CodePoints::last);
  return range == std::end(not_plain) || c < range->first;
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

std::string one_line(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string line;
  line.reserve(text.size());
  for (auto position = text.begin(); position != text.end();) {
    const auto start = position;
    if (next_is_plain(position, text.end())) {
      line.append(start, position);
      continue;
    }
    for (const char c : std::string_view(start, position)) {
      const auto byte = static_cast<unsigned char>(c);
      line += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return line;
}

namespace {

// LibTorch names every kind of memory in use, and its own settings.
std::optional<std::string> short_words_for_memory(std::string_view text) {
  const std::string_view of_host = "DefaultCPUAllocator: can't allocate memory: ";
  constexpr auto remedy = "; a smaller batch or model needs less";
  if (const auto at = text.find(of_host); at != text.npos) {
    text.remove_prefix(at + of_host.size());
    return "out of memory: " + one_line(text.substr(0, text.find('.'))) + remedy;
  }
  const std::string_view of_device = " out of memory. Tried to allocate ";
  if (text.find(of_device) == text.npos) return std::nullopt;
  return one_line(text.substr(0, text.find(" of which "))) + remedy;
}

}  // namespace

std::string one_line(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory";
  std::string_view text = error.what();
  text = text.substr(0, text.find('\n'));
  if (const auto words = short_words_for_memory(text)) return *words;
  std::string line = one_line(text);
  const std::string_view none_left = "Too many open files";
  if (line.ends_with(none_left) || line.find(std::string(none_left) + " [") != std::string::npos)
    line += "; raise the limit of file descriptors (ulimit -n)";
  return line;
}

std::string in_seconds(Duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", std::chrono::duration<double>(time).count());
  return text.data();
}

}  // namespace dpwa
