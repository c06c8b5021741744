#include "dpwa/config/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace dpwa::config {
namespace {

std::string folded(std::string_view word) {
  std::string result;
  for (const char c : word.substr(0, 64)) {
    result += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

// Optimal string alignment distance.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

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

std::string nearest_key(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = folded(word);
  std::string nearest;
  std::size_t least = ~std::size_t{0};
  for (const std::string& candidate : candidates) {
    const std::size_t edits = distance(wanted, folded(candidate));
    const std::size_t allowed =
        std::max<std::size_t>(1, std::max(wanted.size(), candidate.size()) / 3);
    if (edits <= allowed && edits < least) {
      least = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_key(word, candidates);
  return nearest.empty() ? "" : " did you mean '" + nearest + "'?";
}

}  // namespace dpwa::config
