#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interpolation/kernels/dtype.h"

namespace dpwa::kvstore {

// The optimizers that a store can run. The numbers travel on the wire: never renumber.
enum class OptimizerKind : std::uint8_t {
  sgd = 1,
  momentum = 2,  // torch's SGD with momentum
  nesterov = 3,  // torch's SGD with momentum and nesterov
  adam = 4,
  adamw = 5,
  adagrad = 6,
  rmsprop = 7,
};

// What an optimizer is: a name and numbers, never code. Meaning, rules and order of operations are
// those of torch.optim; the defaults are those of LibTorch, with 0.9 for momentum and nesterov.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.01;
  double rescale = 1;       // of the gradient, before anything else: MXNet's rescale_grad
  double weight_decay = 0;  // L2, added to the gradient; of adamw, apart from it
  double momentum = 0;      // momentum, nesterov, rmsprop
  double dampening = 0;     // momentum
  double beta1 = 0.9;       // adam, adamw
  double beta2 = 0.999;
  double alpha = 0.99;     // rmsprop
  double epsilon = 1e-8;   // adam, adamw, adagrad, rmsprop
  double rate_decay = 0;   // adagrad
  double accumulator = 0;  // adagrad: of the sum of squares, at first
  bool amsgrad = false;    // adam, adamw
  bool centered = false;   // rmsprop

  bool operator==(const OptimizerOptions&) const = default;
};

// "sgd", "momentum" and so on.
std::string_view name_of(OptimizerKind kind);
// Throws std::invalid_argument that lists the known names.
OptimizerKind optimizer_kind(std::string_view name);
// With the defaults of its kind.
OptimizerOptions default_options(OptimizerKind kind);
// What is wrong with the numbers, in a text that names the option; none when they are valid.
std::optional<std::string> options_problem(const OptimizerOptions& options);

// The byte form, little-endian:
//    0  u8   kind
//    1  u8   flags: 1 amsgrad, 2 centered
//    2  u8   6 bytes of zero
//    8  f64  learning_rate, rescale, weight_decay, momentum, dampening, beta1, beta2, alpha,
//            epsilon, rate_decay, accumulator
inline constexpr std::size_t options_bytes = 96;
using OptionsBytes = std::array<std::byte, options_bytes>;
OptionsBytes encode(const OptimizerOptions& options);
// None when the bytes are not the form of valid options.
std::optional<OptimizerOptions> decode_options(std::span<const std::byte> bytes);

// The state of an optimizer for the elements of one slice: the number of updates so far, and up to
// three arrays of fp32 (fp64 for values in fp64). Copyable. One thread at a time.
class OptimizerState {
 public:
  OptimizerState() = default;  // the state of no optimizer
  // Before the first update.
  OptimizerState(const OptimizerOptions& options, DType dtype, std::uint64_t elements);
  // Restores what steps() and bytes() returned; none when the number of bytes is wrong.
  static std::optional<OptimizerState> restored(const OptimizerOptions& options, DType dtype,
                                                std::uint64_t elements, std::uint64_t steps,
                                                std::span<const std::byte> bytes);
  // The bytes of all arrays.
  static std::uint64_t bytes_of(const OptimizerOptions& options, DType dtype,
                                std::uint64_t elements);

  std::uint64_t steps() const { return steps_; }
  // Whether an update with these options goes on from this state.
  bool fits(const OptimizerOptions& options, DType dtype, std::uint64_t elements) const;
  // The arrays, one after the other.
  std::span<const std::byte> bytes() const { return arrays_; }

 private:
  friend void apply_update(const OptimizerOptions& options, DType dtype,
                           std::span<std::byte> values, std::span<const std::byte> sum,
                           double scale, OptimizerState& state);

  std::optional<OptimizerKind> kind_;
  std::uint64_t steps_ = 0;
  std::vector<std::byte> arrays_;
};

// One step of the optimizer: moves `values`, of `dtype`, by the gradient scale x `sum`, which has
// elements of computed_in(dtype). The options may differ from those of the step before; a state of
// another kind of optimizer is replaced by an empty one. Throws std::invalid_argument for lengths
// that do not fit.
void apply_update(const OptimizerOptions& options, DType dtype, std::span<std::byte> values,
                  std::span<const std::byte> sum, double scale, OptimizerState& state);

// Without an optimizer: values = scale x sum.
void replace_values(DType dtype, std::span<std::byte> values, std::span<const std::byte> sum,
                    double scale);

}  // namespace dpwa::kvstore
