#include "interpolation/loss.h"

namespace dpwa {
namespace {

class LossWeighted : public Interpolation {
 public:
  double factor(const FactorInput& input) const override {
    return input.loss / (input.loss + input.peer_loss);
  }
  FactorUses uses() const override { return {.loss = true, .peer_loss = true}; }
};

}  // namespace

InterpolationMethod loss_method() {
  return {.name = "loss", .parameters = {}, .make = [](const InterpolationParameters&) {
            return std::make_unique<LossWeighted>();
          }};
}

}  // namespace dpwa
