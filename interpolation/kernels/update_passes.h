#pragma once

// Sums of gradients, and the optimizers that apply them. Only for the variant sources (see
// variant.h), after a definition of
//   square_root(Floats), square_root(Doubles)   of every lane, rounded correctly
//
// Values and parts have the elements of the store; sums and state are fp32, or fp64 for fp64.

#include "interpolation/kernels/encoded_elements.h"
#include "interpolation/kernels/land_pass.h"
#include "interpolation/kernels/update_terms.h"
#include "interpolation/kernels/variant.h"

namespace dpwa::kernels {
namespace {

// The type in which values of the element are summed.
template <class Element>
using Wide = Native<typename Element::Scalar>;

// Adds one block of every part onto `sum`, in their order, and judges the result.
template <class Element>
inline void sum_block(std::byte* sum, const std::byte* const* parts, std::size_t at,
                      const double* weights, std::size_t part_count, bool onto,
                      typename Element::Vector& check) {
  using Scalar = typename Element::Scalar;
  using Pack = typename Element::Pack;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kPacks; ++i) {
    std::size_t part = 0;
    Pack total = {};
    if (onto) {
      total = Wide<Element>::load(sum, i);
    } else if (part_count > 0) {
      const auto weight = static_cast<Scalar>(weights[0]);
      total = Element::load(parts[0] + at, i);
      total.low *= weight;
      total.high *= weight;
      part = 1;
    }
    for (; part < part_count; ++part) {
      const auto weight = static_cast<Scalar>(weights[part]);
      const Pack added = Element::load(parts[part] + at, i);
      total.low += added.low * weight;
      total.high += added.high * weight;
    }
    check += (total.low - total.low) + (total.high - total.high);
    Wide<Element>::store(sum, i, total);
  }
}

// sum = (onto ? sum : 0) + weights[0] * parts[0] + ...; whether every element of it is finite.
template <class Element>
bool sum_pass(std::byte* sum, const std::byte* const* parts, const double* weights,
              std::size_t part_count, std::size_t count, bool onto) {
  constexpr std::size_t kSumStride = kStride<Wide<Element>>;
  typename Element::Vector check = {};
  const std::size_t blocks = count / kBlock<Element>;
  for (std::size_t block = 0; block < blocks; ++block) {
    sum_block<Element>(sum + block * kSumStride, parts, block * kStride<Element>, weights,
                       part_count, onto, check);
  }
  const std::size_t rest = count % kBlock<Element>;
  if (rest > 0) {  // one part after the other: the order of the additions is the same
    using Scalar = typename Element::Scalar;
    std::byte* const to = sum + blocks * kSumStride;
    std::byte sum_rest[kSumStride] = {};
    if (onto) __builtin_memcpy(sum_rest, to, rest * sizeof(Scalar));
    if (part_count == 0) sum_block<Element>(sum_rest, nullptr, 0, nullptr, 0, true, check);
    for (std::size_t part = 0; part < part_count; ++part) {
      std::byte part_rest[kStride<Element>] = {};
      __builtin_memcpy(part_rest, parts[part] + blocks * kStride<Element>, rest * Element::kSize);
      const std::byte* const only = part_rest;
      sum_block<Element>(sum_rest, &only, 0, weights + part, 1, onto || part > 0, check);
    }
    __builtin_memcpy(to, sum_rest, rest * sizeof(Scalar));
  }
  typename Element::Scalar total = 0;
  add_lanes(check, total);
  return total == total;
}

// UpdateTerms in the type of the computation.
template <class Scalar>
struct Terms {
  Scalar scale, weight_decay, keep, rate, decay1, fresh1, decay2, fresh2, root, epsilon, momentum;

  explicit Terms(const UpdateTerms& terms)
      : scale((Scalar)terms.scale),
        weight_decay((Scalar)terms.weight_decay),
        keep((Scalar)terms.keep),
        rate((Scalar)terms.rate),
        decay1((Scalar)terms.decay1),
        fresh1((Scalar)terms.fresh1),
        decay2((Scalar)terms.decay2),
        fresh2((Scalar)terms.fresh2),
        root((Scalar)terms.root),
        epsilon((Scalar)terms.epsilon),
        momentum((Scalar)terms.momentum) {}
};

template <class Vector>
inline Vector larger(Vector a, Vector b) {
  return a > b ? a : b;
}

// One vector of values: `sum` and `x` in, the new x out; `state` changes.
template <Update kUpdate, class Vector, class Scalar>
inline Vector updated(Vector x, Vector sum, Vector* state, const Terms<Scalar>& terms) {
  Vector g = sum * terms.scale;
  if constexpr (kUpdate == Update::replace) return g;
  g += x * terms.weight_decay;
  Vector* const m = state;
  if constexpr (kUpdate == Update::sgd) {
    return x - g * terms.rate;
  } else if constexpr (kUpdate == Update::momentum || kUpdate == Update::nesterov) {
    *m = *m * terms.decay1 + g * terms.fresh1;
    const Vector step = kUpdate == Update::momentum ? *m : g + *m * terms.decay1;
    return x - step * terms.rate;
  } else if constexpr (kUpdate == Update::adam || kUpdate == Update::amsgrad) {
    Vector* const v = state + 1;
    *m = *m * terms.decay1 + g * terms.fresh1;
    *v = *v * terms.decay2 + g * g * terms.fresh2;
    Vector second = *v;
    if constexpr (kUpdate == Update::amsgrad) second = state[2] = larger(state[2], *v);
    const Vector root = square_root(second) * terms.root + terms.epsilon;
    return x * terms.keep - *m * terms.rate / root;
  } else if constexpr (kUpdate == Update::adagrad) {
    state[0] += g * g;
    return x - g * terms.rate / (square_root(state[0]) + terms.epsilon);
  } else {
    constexpr bool kCentered =
        kUpdate == Update::rmsprop_centered || kUpdate == Update::rmsprop_centered_momentum;
    constexpr bool kMomentum =
        kUpdate == Update::rmsprop_momentum || kUpdate == Update::rmsprop_centered_momentum;
    state[0] = state[0] * terms.decay2 + g * g * terms.fresh2;
    Vector square = state[0];
    if constexpr (kCentered) {
      Vector& mean = state[1];
      mean = mean * terms.decay1 + g * terms.fresh1;
      square = larger(square - mean * mean, Vector{});  // rounding may bring it below 0
    }
    const Vector root = square_root(square) + terms.epsilon;
    if constexpr (!kMomentum) return x - g * terms.rate / root;
    Vector& velocity = state[kCentered ? 2 : 1];
    velocity = velocity * terms.momentum + g / root;
    return x - velocity * terms.rate;
  }
}

template <class Element, Update kUpdate>
inline void update_block(std::byte* values, const std::byte* sum, std::byte* const* state,
                         std::size_t at, const Terms<typename Element::Scalar>& terms) {
  using Pack = typename Element::Pack;
  using Vector = typename Element::Vector;
  constexpr std::size_t kStates = state_count(kUpdate);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kPacks; ++i) {
    Pack x = Element::load(values, i);
    const Pack s = Wide<Element>::load(sum, i);
    Vector low[max_state_count] = {}, high[max_state_count] = {};
    for (std::size_t k = 0; k < kStates; ++k) {
      const Pack pack = Wide<Element>::load(state[k] + at, i);
      low[k] = pack.low;
      high[k] = pack.high;
    }
    x.low = updated<kUpdate>(x.low, s.low, low, terms);
    x.high = updated<kUpdate>(x.high, s.high, high, terms);
    Element::store(values, i, x);
    for (std::size_t k = 0; k < kStates; ++k)
      Wide<Element>::store(state[k] + at, i, {low[k], high[k]});
  }
}

template <class Element, Update kUpdate>
void update_pass(std::byte* values, const std::byte* sum, std::byte* const* state,
                 std::size_t count, const UpdateTerms& of_update) {
  using Scalar = typename Element::Scalar;
  constexpr std::size_t kWide = kStride<Wide<Element>>;
  constexpr std::size_t kStates = state_count(kUpdate);
  const Terms<Scalar> terms(of_update);
  const std::size_t blocks = count / kBlock<Element>;
  for (std::size_t block = 0; block < blocks; ++block) {
    update_block<Element, kUpdate>(values + block * kStride<Element>, sum + block * kWide, state,
                                   block * kWide, terms);
  }
  const std::size_t rest = count % kBlock<Element>;
  if (rest == 0) return;
  const std::size_t at = blocks * kWide;
  const std::size_t bytes = rest * sizeof(Scalar);
  std::byte* const last_values = values + blocks * kStride<Element>;
  std::byte values_rest[kStride<Element>] = {};
  std::byte sum_rest[kWide] = {};
  std::byte state_rest[max_state_count][kWide] = {};
  std::byte* of_rest[max_state_count] = {state_rest[0], state_rest[1], state_rest[2]};
  __builtin_memcpy(values_rest, last_values, rest * Element::kSize);
  __builtin_memcpy(sum_rest, sum + at, bytes);
  for (std::size_t k = 0; k < kStates; ++k) __builtin_memcpy(state_rest[k], state[k] + at, bytes);
  update_block<Element, kUpdate>(values_rest, sum_rest, of_rest, 0, terms);
  __builtin_memcpy(last_values, values_rest, rest * Element::kSize);
  for (std::size_t k = 0; k < kStates; ++k) __builtin_memcpy(state[k] + at, state_rest[k], bytes);
}

template <class Element>
constexpr UpdateKernels update_kernels() {
  return {sum_pass<Element>,
          {update_pass<Element, Update::replace>, update_pass<Element, Update::sgd>,
           update_pass<Element, Update::momentum>, update_pass<Element, Update::nesterov>,
           update_pass<Element, Update::adam>, update_pass<Element, Update::amsgrad>,
           update_pass<Element, Update::adagrad>, update_pass<Element, Update::rmsprop>,
           update_pass<Element, Update::rmsprop_momentum>,
           update_pass<Element, Update::rmsprop_centered>,
           update_pass<Element, Update::rmsprop_centered_momentum>}};
}

}  // namespace
}  // namespace dpwa::kernels
