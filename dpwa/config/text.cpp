#include "dpwa/config/text.h"

#include <algorithm>
#include <array>
#include <boost/locale/utf.hpp>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <span>

#include "dpwa/base/numbers.h"
#include "dpwa/base/plain_text.h"

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

struct Unit {
  std::string_view name;
  double scale;
};

constexpr Unit duration_units[] = {
    {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
constexpr Unit size_units[] = {{"b", 1},
                               {"kb", 1e3},
                               {"mb", 1e6},
                               {"gb", 1e9},
                               {"kib", 1024},
                               {"mib", 1024.0 * 1024},
                               {"gib", 1024.0 * 1024 * 1024}};

struct Quantity {
  double number = 0;
  double scale = 1;
};

std::optional<Quantity> parse_quantity(std::string_view text, std::span<const Unit> units,
                                       double bare_scale, bool any_case) {
  const std::size_t digits_end = text.find_last_of("0123456789.");
  if (digits_end == std::string_view::npos) return std::nullopt;
  const auto number = parse_number(text.substr(0, digits_end + 1));
  if (!number) return std::nullopt;
  std::string unit(text.substr(digits_end + 1));
  if (unit.empty()) return Quantity{*number, bare_scale};
  unit.erase(0, unit.find_first_not_of(' '));
  if (any_case) {
    std::transform(unit.begin(), unit.end(), unit.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  }
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const Unit& candidate) { return candidate.name == unit; });
  if (found == units.end()) return std::nullopt;
  return Quantity{*number, found->scale};
}

}  // namespace

std::string shown(std::string_view value) {
  constexpr std::size_t longest = 60;
  std::size_t size = std::min(value.size(), longest);
  // Not within a character, whose continuation bytes are 10xxxxxx. It has at most three of them.
  const auto splits = [&] {
    return size < value.size() && (static_cast<unsigned char>(value[size]) & 0xC0U) == 0x80U;
  };
  while (splits() && size > longest - 3) --size;
  std::string text(1, '\'');
  text += one_line(value.substr(0, size));
  return text += size < value.size() ? "...'" : "'";
}

bool has_control(std::string_view utf8) {
  for (auto position = utf8.begin(); position != utf8.end();) {
    const auto c = boost::locale::utf::utf_traits<char>::decode(position, utf8.end());
    if (is_control(c) && c != '\t') return true;
  }
  return false;
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

std::string unknown_word(std::string_view word, const std::vector<std::string>& accepted) {
  return shown(word) + " is unknown," + suggestion(word, accepted) +
         " accepted: " + joined(accepted);
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = number_in<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<Duration> parse_duration_ms(std::string_view text) {
  const auto quantity = parse_quantity(text, duration_units, 1e6, false);
  if (!quantity) return std::nullopt;
  constexpr double longest_ns = 1000 * 3600e9;
  const double ns = std::clamp(quantity->number * quantity->scale, -longest_ns, longest_ns);
  // Rounding away from zero below 1 ns keeps the sign for the range check.
  const double rounded =
      std::abs(ns) < 1 ? (ns < 0 ? std::floor(ns) : std::round(ns)) : std::round(ns);
  return Duration(static_cast<Duration::rep>(rounded));
}

std::optional<std::int64_t> parse_size_bytes(std::string_view text) {
  const auto quantity = parse_quantity(text, size_units, 1, true);
  if (!quantity) return std::nullopt;
  const double bytes = quantity->number * quantity->scale;
  if (bytes < 0 || bytes >= 0x1p53) return -1;
  if (bytes != std::floor(bytes)) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::string size_text(std::int64_t bytes) {
  constexpr std::int64_t kib = 1024;
  constexpr std::int64_t mib = kib * kib;
  if (bytes > 0 && bytes % mib == 0) return std::to_string(bytes / mib) + "MiB";
  if (bytes > 0 && bytes % kib == 0) return std::to_string(bytes / kib) + "KiB";
  return std::to_string(bytes);
}

std::string milliseconds_text(Duration duration) {
  return number_text(static_cast<double>(duration.count()) / 1e6);
}

}  // namespace dpwa::config
