#include "dpwa/config/text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace dpwa::config {

std::string one_line(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      line += c;
    }
  }
  return line;
}

std::string shown(std::string_view value) {
  constexpr std::size_t longest = 60;
  std::string text(1, '\'');
  text += one_line(value.substr(0, longest));
  return text += value.size() > longest ? "...'" : "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string number_text(double value) {
  std::array<char, 32> buffer;
  char* const last = buffer.data() + buffer.size();
  const bool whole = std::abs(value) < 1e15 && value == std::trunc(value);
  const auto end = whole ? std::to_chars(buffer.data(), last, value, std::chars_format::fixed).ptr
                         : std::to_chars(buffer.data(), last, value).ptr;
  return {buffer.data(), end};
}

}  // namespace dpwa::config
