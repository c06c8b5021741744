#include "interpolation/constant.h"

namespace dpwa {
namespace {

class Constant : public Interpolation {
 public:
  explicit Constant(double value) : value_(value) {}
  double factor(const FactorInput&) const override { return value_; }
  FactorUses uses() const override { return {}; }

 private:
  double value_;
};

}  // namespace

InterpolationMethod constant_method() {
  return {.name = "constant",
          .parameters = {{.name = "value", .default_value = 0.5, .minimum = 0, .maximum = 1}},
          .make = [](const InterpolationParameters& given) {
            return std::make_unique<Constant>(given.at("value"));
          }};
}

}  // namespace dpwa
