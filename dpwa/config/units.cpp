#include "dpwa/config/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>

#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

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

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
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
