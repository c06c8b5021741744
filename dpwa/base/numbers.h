#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>

namespace dpwa {

// The number that is the whole of `text`; none when it is anything else, or out of range.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// A finite number to so many digits, which is short as text; integers as they are.
inline double with_digits(double value, int digits) {
  if (value == 0 || value == std::round(value)) return value;
  const double unit = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

}  // namespace dpwa
