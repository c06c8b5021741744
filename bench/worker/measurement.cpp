#include "bench/worker/measurement.h"

#include <ostream>

namespace dpwa::bench {
Json json_of(const Range& range) {
  return {{"min", range.min}, {"median", range.median}, {"max", range.max}};
}

Json json_of(const Noise& noise) {
  return {{"noisy", !noise.reasons.empty()},
          {"spread", noise.spread},
          {"other_load", noise.other_load},
          {"steal", noise.steal},
          {"reasons", noise.reasons}};
}

void warn_when_noisy(const Noise& noise, std::ostream& err) {
  for (const std::string& reason : noise.reasons) err << "!! machine was noisy: " << reason << '\n';
}

}  // namespace dpwa::bench
