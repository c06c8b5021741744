#include "interpolation/loss_divergence.h"

#include <algorithm>

namespace dpwa {
namespace {

class LossDivergence : public Interpolation {
 public:
  explicit LossDivergence(double target) : target_(target) {}
  double factor(const FactorInput& input) const override {
    const double own = input.loss * input.loss;
    const double peer = input.peer_loss * input.peer_loss;
    return own / (own + peer) * std::min(input.loss / target_, 1.0);
  }
  FactorUses uses() const override { return {.loss = true, .peer_loss = true}; }

 private:
  double target_;
};

}  // namespace

InterpolationMethod loss_divergence_method() {
  return {.name = "loss_divergence",
          .parameters = {{.name = "target", .default_value = 1, .minimum = 1e-12}},
          .make = [](const InterpolationParameters& given) {
            return std::make_unique<LossDivergence>(given.at("target"));
          }};
}

}  // namespace dpwa
