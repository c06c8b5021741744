#pragma once

#include <iosfwd>

#include "bench/measure/statistics.h"
#include "bench/worker/child.h"

namespace dpwa::bench {

Json json_of(const Range& range);
Json json_of(const Noise& noise);

void warn_when_noisy(const Noise& noise, std::ostream& err);

}  // namespace dpwa::bench
