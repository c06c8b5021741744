#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dpwa/base/time.h"

namespace dpwa::config {

// Numbers, durations and sizes as text. Each parse takes the whole text or gives nothing; NaN and
// infinity are no numbers.
std::optional<double> parse_number(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);

// "500ms", "2s", "1.5 m"; units us, ms, s, m, h. A bare number counts milliseconds. Rounded to 1
// ns; magnitudes past 1000 hours are clipped to it, signs are kept, so a range check decides.
std::optional<Duration> parse_duration_ms(std::string_view text);

// "512KiB", "64MiB", "1MB", "4096"; units B, KB, MB, GB (powers of 1000), KiB, MiB, GiB (of 1024),
// in either case. A bare number counts bytes. Nothing when it is no whole number of bytes; negative
// and absurd values (2^53 and more) give -1.
std::optional<std::int64_t> parse_size_bytes(std::string_view text);

// Bytes in the largest of B, KiB and MiB of which they are a multiple: "64", "512KiB", "25MiB".
std::string size_text(std::int64_t bytes);

// Milliseconds as a number, exact to 1 ns: "500", "0.25".
std::string milliseconds_text(Duration duration);

}  // namespace dpwa::config
