#include "bench/quantity.h"

#include <cmath>
#include <cstdio>

#include "dpwa/config/text.h"

namespace dpwa::bench {
namespace {

std::string with_unit(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g %s", value, unit);
  return text;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto bytes = config::parse_size_bytes(text);
  if (!bytes || *bytes <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  double scale = 1;
  if (!text.empty()) {
    const char unit = text.back();
    if (unit == 'k' || unit == 'K') scale = 1e3;
    if (unit == 'm' || unit == 'M') scale = 1e6;
    if (unit == 'g' || unit == 'G') scale = 1e9;
    if (scale > 1) text.remove_suffix(1);
  }
  const auto number = config::parse_number(text);
  if (!number) return std::nullopt;
  const double value = *number * scale;
  if (value < 1 || value >= 0x1p53 || value != std::floor(value)) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::string size_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return with_unit(value / 1e9, "GB");
  if (bytes >= 1'000'000) return with_unit(value / 1e6, "MB");
  if (bytes >= 1'000) return with_unit(value / 1e3, "KB");
  return with_unit(value, "B");
}

std::string time_text(double microseconds) {
  if (microseconds >= 1e6) return with_unit(microseconds / 1e6, "s");
  if (microseconds >= 1e3) return with_unit(microseconds / 1e3, "ms");
  return with_unit(microseconds, "us");
}

std::string number_text(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string rate_text(double gb_per_s) {
  constexpr double smallest = 0.1;
  return gb_per_s < smallest ? number_text(1000 * gb_per_s, 2) + " MB/s"
                             : number_text(gb_per_s, 2) + " GB/s";
}

}  // namespace dpwa::bench
