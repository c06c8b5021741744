#pragma once

#include <cstddef>

namespace dpwa::kernels {

// The passes with which a sum of gradients moves values. Below: x the value, g the gradient after
// scale and weight decay, m and v the state, one element each.
enum class Update {
  replace,                    // x = scale * sum, and nothing else
  sgd,                        // x -= rate * g
  momentum,                   // m = decay1 * m + fresh1 * g; x -= rate * m
  nesterov,                   // the same m; x -= rate * (g + decay1 * m)
  adam,                       // m, v = moments of g; x -= rate * m / (root * sqrt(v) + epsilon)
  amsgrad,                    // the same with the largest v so far, the third state
  adagrad,                    // v += g^2; x -= rate * g / (sqrt(v) + epsilon)
  rmsprop,                    // v = moment of g^2; x -= rate * g / (sqrt(v) + epsilon)
  rmsprop_momentum,           // m = momentum * m + g / (sqrt(v) + epsilon); x -= rate * m
  rmsprop_centered,           // as rmsprop, with sqrt(v - mean^2) for sqrt(v)
  rmsprop_centered_momentum,  // both
};
inline constexpr std::size_t update_count = 11;

// Numbers of one update, the same for every element:
//   g = scale * sum + weight_decay * x, of x before the update;
//   x is multiplied by `keep` first (weight decay apart from the gradient, as in AdamW);
//   a moment of q is decay * moment + fresh * q.
struct UpdateTerms {
  double scale = 1;
  double weight_decay = 0;
  double keep = 1;
  double rate = 0;
  double decay1 = 0;  // of the first state: adam's m, momentum's m, the mean of rmsprop
  double fresh1 = 1;
  double decay2 = 0;  // of moments of g^2
  double fresh2 = 1;
  double root = 1;
  double epsilon = 0;
  double momentum = 0;  // of rmsprop
};

// Arrays of state that a pass uses, in this order: m, then v, then the rest. rmsprop: v, then the
// mean of g if it is centered, then m if it has momentum.
constexpr std::size_t state_count(Update update) {
  switch (update) {
    case Update::replace:
    case Update::sgd:
      return 0;
    case Update::momentum:
    case Update::nesterov:
    case Update::adagrad:
    case Update::rmsprop:
      return 1;
    case Update::adam:
    case Update::rmsprop_momentum:
    case Update::rmsprop_centered:
      return 2;
    case Update::amsgrad:
    case Update::rmsprop_centered_momentum:
      return 3;
  }
  return 0;
}
inline constexpr std::size_t max_state_count = 3;

}  // namespace dpwa::kernels
