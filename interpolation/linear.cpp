#include "interpolation/linear.h"

namespace dpwa {
namespace {

class Linear : public Interpolation {
 public:
  Linear(double start, double end, double target) : start_(start), end_(end), target_(target) {}
  double factor(const FactorInput& input) const override {
    if (input.clock > target_) return end_;
    return start_ + input.clock * (end_ - start_) / target_;
  }
  FactorUses uses() const override { return {.clock = true}; }

 private:
  double start_;
  double end_;
  double target_;
};

}  // namespace

InterpolationMethod linear_method() {
  return {.name = "linear",
          .parameters = {{.name = "start", .default_value = 0.5, .minimum = 0, .maximum = 1},
                         {.name = "end", .default_value = 0.1, .minimum = 0, .maximum = 1},
                         {.name = "target", .default_value = 10000, .minimum = 1}},
          .make = [](const InterpolationParameters& given) {
            return std::make_unique<Linear>(given.at("start"), given.at("end"), given.at("target"));
          }};
}

}  // namespace dpwa
