#include "test/interpolation/capped_clock.h"

#include <algorithm>

namespace {

// capped_clock: as `clock`, but never more than `cap`, so that a late joiner keeps some of its own.
class CappedClock : public dpwa::Interpolation {
 public:
  explicit CappedClock(double cap) : cap_(cap) {}
  double factor(const dpwa::FactorInput& input) const override {
    const double share = input.peer_clock / (input.clock + input.peer_clock);
    return std::min(share, cap_);  // in this order 0/0 stays NaN, which the guard must see
  }
  dpwa::FactorUses uses() const override { return {.clock = true, .peer_clock = true}; }

 private:
  double cap_;
};

}  // namespace

dpwa::InterpolationMethod capped_clock_method() {
  return {.name = "capped_clock",
          .parameters = {{.name = "cap", .default_value = 0.5, .minimum = 0, .maximum = 1}},
          .make = [](const dpwa::InterpolationParameters& given) {
            return std::make_unique<CappedClock>(given.at("cap"));
          }};
}
