#include "dpwa/rules/step_interval.h"

#include <algorithm>
#include <cmath>

namespace dpwa {

void StepInterval::observe(TimePoint now) {
  if (begun_) lengths_[seen_++ % steps] = now - *begun_;
  begun_ = now;
}

Duration StepInterval::get() const {
  const auto kept = static_cast<std::ptrdiff_t>(std::min(seen_, steps));
  if (kept == 0) return {};
  auto lengths = lengths_;
  const auto middle = lengths.begin() + kept / 2;
  std::nth_element(lengths.begin(), middle, lengths.begin() + kept);
  return *middle;
}

double PullMoment::next(Random& random) {
  place_ = std::fmod(place_ + random.uniform(0, furthest), 2);
  return 1 - std::abs(place_ - 1);
}

}  // namespace dpwa
