#include "dpwa/kvstore/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "dpwa/kvstore/values.h"
#include "interpolation/kernels/updates.h"

namespace dpwa::kvstore {
namespace {

using kernels::Update;
using kernels::UpdateTerms;

Update pass_of(const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      return Update::sgd;
    case OptimizerKind::momentum:
      return Update::momentum;
    case OptimizerKind::nesterov:
      return Update::nesterov;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return options.amsgrad ? Update::amsgrad : Update::adam;
    case OptimizerKind::adagrad:
      return Update::adagrad;
    case OptimizerKind::rmsprop:
      break;
  }
  if (options.momentum == 0) return options.centered ? Update::rmsprop_centered : Update::rmsprop;
  return options.centered ? Update::rmsprop_centered_momentum : Update::rmsprop_momentum;
}

// The factors of update number `step`, from 1.
UpdateTerms terms_of(const OptimizerOptions& options, double scale, std::uint64_t step) {
  const auto number = static_cast<double>(step);
  UpdateTerms terms;
  terms.scale = scale * options.rescale;
  terms.weight_decay = options.weight_decay;
  terms.rate = options.learning_rate;
  terms.epsilon = options.epsilon;
  switch (options.kind) {
    case OptimizerKind::sgd:
      break;
    case OptimizerKind::momentum:
    case OptimizerKind::nesterov:
      terms.decay1 = options.momentum;
      terms.fresh1 = step == 1 ? 1 : 1 - options.dampening;
      break;
    case OptimizerKind::adamw:
      terms.weight_decay = 0;
      terms.keep = 1 - options.learning_rate * options.weight_decay;
      [[fallthrough]];
    case OptimizerKind::adam:
      terms.decay1 = options.beta1;
      terms.fresh1 = 1 - options.beta1;
      terms.decay2 = options.beta2;
      terms.fresh2 = 1 - options.beta2;
      terms.rate = options.learning_rate / (1 - std::pow(options.beta1, number));
      terms.root = 1 / std::sqrt(1 - std::pow(options.beta2, number));
      break;
    case OptimizerKind::adagrad:
      terms.rate = options.learning_rate / (1 + (number - 1) * options.rate_decay);
      break;
    case OptimizerKind::rmsprop:
      terms.decay1 = terms.decay2 = options.alpha;
      terms.fresh1 = terms.fresh2 = 1 - options.alpha;
      terms.momentum = options.momentum;
      break;
  }
  return terms;
}

template <class Scalar>
void fill(std::span<std::byte> array, double value) {
  const auto element = static_cast<Scalar>(value);
  for (std::size_t at = 0; at < array.size(); at += sizeof element)
    std::memcpy(array.data() + at, &element, sizeof element);
}

}  // namespace

OptimizerState::OptimizerState(const OptimizerOptions& options, DType dtype, std::uint64_t elements)
    : kind_(options.kind), arrays_(bytes_of(options, dtype, elements)) {
  if (options.kind != OptimizerKind::adagrad || options.accumulator == 0) return;
  const bool wide = computed_in(dtype) == DType::float64;
  (wide ? fill<double> : fill<float>)(arrays_, options.accumulator);
}

std::optional<OptimizerState> OptimizerState::restored(const OptimizerOptions& options, DType dtype,
                                                       std::uint64_t elements, std::uint64_t steps,
                                                       std::span<const std::byte> bytes) {
  if (bytes.size() != bytes_of(options, dtype, elements)) return std::nullopt;
  OptimizerState state;
  state.kind_ = options.kind;
  state.steps_ = steps;
  state.arrays_.assign(bytes.begin(), bytes.end());
  return state;
}

std::uint64_t OptimizerState::bytes_of(const OptimizerOptions& options, DType dtype,
                                       std::uint64_t elements) {
  return kernels::state_count(pass_of(options)) * elements * size_of(computed_in(dtype));
}

bool OptimizerState::fits(const OptimizerOptions& options, DType dtype,
                          std::uint64_t elements) const {
  return kind_ == options.kind && arrays_.size() == bytes_of(options, dtype, elements);
}

void apply_update(const OptimizerOptions& options, DType dtype, std::span<std::byte> values,
                  std::span<const std::byte> sum, double scale, OptimizerState& state) {
  const std::size_t array_bytes = sum.size();
  const std::uint64_t elements = array_bytes / size_of(computed_in(dtype));
  if (!state.fits(options, dtype, elements)) state = OptimizerState(options, dtype, elements);
  const Update pass = pass_of(options);
  std::array<std::byte*, kernels::max_state_count> arrays{};
  const std::size_t count = kernels::state_count(pass);
  for (std::size_t i = 0; i < count; ++i) arrays[i] = state.arrays_.data() + i * array_bytes;
  kernels::update(pass, dtype, values, sum, std::span(arrays).first(count),
                  terms_of(options, scale, state.steps_ + 1));
  ++state.steps_;
}

void replace_values(DType dtype, std::span<std::byte> values, std::span<const std::byte> sum,
                    double scale) {
  UpdateTerms terms;
  terms.scale = scale;
  kernels::update(Update::replace, dtype, values, sum, {}, terms);
}

}  // namespace dpwa::kvstore
