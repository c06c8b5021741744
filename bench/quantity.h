#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dpwa::bench {

// "200", "10KB", "100MB" (powers of 1000), "64MiB" (of 1024): bytes, above zero. Nothing otherwise.
std::optional<std::uint64_t> parse_size(std::string_view text);

// "500", "100k", "10M", "1.5G": powers of 1000, a whole number above zero. Nothing otherwise.
std::optional<std::uint64_t> parse_count(std::string_view text);

// "200 B", "10 KB", "1.5 GB": powers of 1000, at most four digits.
std::string size_text(std::uint64_t bytes);

// "5.07 GB/s", "19.7 ms", "180 us": `value` with three digits and the unit that suits it.
std::string time_text(double microseconds);
std::string number_text(double value, int decimals);
// Where `gb_per_s` is small, in MB/s.
std::string rate_text(double gb_per_s);

}  // namespace dpwa::bench
