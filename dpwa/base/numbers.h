#pragma once

#include <charconv>
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

}  // namespace dpwa
