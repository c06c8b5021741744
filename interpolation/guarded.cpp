#include "interpolation/guarded.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace dpwa {
namespace {

class DivergenceThreshold : public Interpolation {
 public:
  DivergenceThreshold(std::unique_ptr<Interpolation> inner, double threshold)
      : inner_(std::move(inner)), threshold_(threshold) {}

  double factor(const FactorInput& input) const override {
    const double factor = inner_->factor(input);
    return input.loss < threshold_ ? factor * input.loss / threshold_ : factor;
  }
  FactorUses uses() const override {
    FactorUses uses = inner_->uses();
    uses.loss = true;
    return uses;
  }

 private:
  std::unique_ptr<Interpolation> inner_;
  double threshold_;
};

bool usable(double value) {
  return std::isfinite(value) && value >= 0;
}

bool usable(const FactorInput& input, const FactorUses& uses) {
  return (!uses.clock || usable(input.clock)) && (!uses.peer_clock || usable(input.peer_clock)) &&
         (!uses.loss || usable(input.loss)) && (!uses.peer_loss || usable(input.peer_loss));
}

}  // namespace

std::unique_ptr<Interpolation> with_divergence_threshold(std::unique_ptr<Interpolation> inner,
                                                         double threshold) {
  if (!inner) throw std::invalid_argument("divergence threshold: no policy to damp");
  if (!std::isfinite(threshold) || threshold < 0) {
    throw std::invalid_argument("divergence threshold must be finite and at least 0");
  }
  if (threshold == 0) return inner;
  return std::make_unique<DivergenceThreshold>(std::move(inner), threshold);
}

GuardedInterpolation::GuardedInterpolation(std::unique_ptr<Interpolation> inner,
                                           double fallback_factor)
    : inner_(std::move(inner)), fallback_factor_(fallback_factor) {
  if (!inner_) throw std::invalid_argument("guarded interpolation: no policy");
  if (!(fallback_factor >= 0 && fallback_factor <= 1)) {
    throw std::invalid_argument("guarded interpolation: fallback factor outside [0, 1]");
  }
}

std::optional<double> GuardedInterpolation::constant() const {
  const FactorUses uses = inner_->uses();
  if (uses.clock || uses.peer_clock || uses.loss || uses.peer_loss) return std::nullopt;
  return factor({}).factor;
}

FactorResult GuardedInterpolation::factor(const FactorInput& input) const {
  if (!usable(input, inner_->uses())) return {fallback_factor_, true};
  const double factor = inner_->factor(input);
  if (!std::isfinite(factor)) return {fallback_factor_, true};
  return {std::clamp(factor, 0.0, 1.0), false};
}

}  // namespace dpwa
