#include "dpwa/rules/step_interval.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "dpwa/base/usual_time.h"

namespace dpwa {

void StepInterval::observe(TimePoint now) {
  if (begun_) lengths_[seen_++ % steps] = now - *begun_;
  begun_ = now;
}

Duration StepInterval::get() const {
  const auto kept = std::min(seen_, steps);
  if (kept == 0) return {};
  auto lengths = lengths_;
  return upper_median(std::span(lengths).first(kept));
}

double PullMoment::next(Random& random) {
  place_ = std::fmod(place_ + random.uniform(0, furthest), 2);
  return 1 - std::abs(place_ - 1);
}

}  // namespace dpwa
