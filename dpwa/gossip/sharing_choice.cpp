#include "dpwa/gossip/sharing_choice.h"

namespace dpwa {
namespace {

constexpr double weight_of_new = 0.25;

}  // namespace

bool SharingChoice::share() {
  if (!cost_[0] || !cost_[1]) {
    shared_ = cost_[0].has_value();
  } else {
    const bool faster = *cost_[1] < *cost_[0];
    const bool retry = ++since_retry_ >= retry_every;
    if (retry) since_retry_ = 0;
    shared_ = retry ? !faster : faster;
  }
  return shared_;
}

void SharingChoice::took(double seconds_per_byte) {
  auto& cost = cost_[shared_ ? 1 : 0];
  cost = cost ? *cost + weight_of_new * (seconds_per_byte - *cost) : seconds_per_byte;
}

}  // namespace dpwa
