#include "interpolation/clock.h"

namespace dpwa {
namespace {

class ClockWeighted : public Interpolation {
 public:
  double factor(const FactorInput& input) const override {
    return input.peer_clock / (input.clock + input.peer_clock);
  }
  FactorUses uses() const override { return {.clock = true, .peer_clock = true}; }
};

}  // namespace

InterpolationMethod clock_method() {
  return {.name = "clock", .parameters = {}, .make = [](const InterpolationParameters&) {
            return std::make_unique<ClockWeighted>();
          }};
}

}  // namespace dpwa
