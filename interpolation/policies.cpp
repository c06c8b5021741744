#include "interpolation/policies.h"

#include <algorithm>
#include <memory>

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

class ClockWeighted : public Interpolation {
 public:
  double factor(const FactorInput& input) const override {
    return input.peer_clock / (input.clock + input.peer_clock);
  }
  FactorUses uses() const override { return {.clock = true, .peer_clock = true}; }
};

class LossWeighted : public Interpolation {
 public:
  double factor(const FactorInput& input) const override {
    return input.loss / (input.loss + input.peer_loss);
  }
  FactorUses uses() const override { return {.loss = true, .peer_loss = true}; }
};

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

std::vector<InterpolationMethod> built_in_policies() {
  using Given = InterpolationParameters;
  return {
      {.name = "constant",
       .parameters = {{.name = "value", .default_value = 0.5, .minimum = 0, .maximum = 1}},
       .make = [](const Given& given) { return std::make_unique<Constant>(given.at("value")); }},
      {.name = "clock",
       .parameters = {},
       .make = [](const Given&) { return std::make_unique<ClockWeighted>(); }},
      {.name = "loss",
       .parameters = {},
       .make = [](const Given&) { return std::make_unique<LossWeighted>(); }},
      {.name = "linear",
       .parameters = {{.name = "start", .default_value = 0.5, .minimum = 0, .maximum = 1},
                      {.name = "end", .default_value = 0.1, .minimum = 0, .maximum = 1},
                      {.name = "target", .default_value = 10000, .minimum = 1}},
       .make =
           [](const Given& given) {
             return std::make_unique<Linear>(given.at("start"), given.at("end"),
                                             given.at("target"));
           }},
      {.name = "loss_divergence",
       .parameters = {{.name = "target", .default_value = 1, .minimum = 1e-12}},
       .make =
           [](const Given& given) { return std::make_unique<LossDivergence>(given.at("target")); }},
  };
}

}  // namespace dpwa
