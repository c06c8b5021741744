#include "interpolation/divergence_threshold.h"

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

}  // namespace dpwa
