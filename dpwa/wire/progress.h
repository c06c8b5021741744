#pragma once

#include <cstdint>
#include <string_view>

#include "dpwa/rules/progress.h"
#include "dpwa/wire/reader.h"
#include "dpwa/wire/writer.h"

namespace dpwa::wire {

// What SNAPSHOT and MAPPED both begin with:
//   offset size
//        0    8  version
//        8    8  lineage
//       16    8  clock, IEEE 754 binary64
//       24    8  loss, binary64, NaN = not known
//       32    8  push-sum weight, binary64
//       40    8  time of the publish, signed, microseconds since the epoch
void write_progress(Writer& out, const Progress& progress);
Progress read_progress(Reader& in);
inline constexpr std::uint8_t final_flag = 1;  // `final`, in the flags of the message

// What is wrong with the values; empty when nothing is. The loss may be anything: the guards of the
// interpolation see to it.
std::string_view progress_fault(const Progress& progress);

}  // namespace dpwa::wire
