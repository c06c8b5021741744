#include "dpwa/rules/step_interval.h"

#include <algorithm>

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

}  // namespace dpwa
