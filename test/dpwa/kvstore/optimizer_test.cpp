#include "dpwa/kvstore/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace dpwa::kvstore {
namespace {

using Doubles = std::array<double, 3>;

template <class Array>
std::span<std::byte> bytes_of(Array& array) {
  return std::as_writable_bytes(std::span(array));
}

// Exact in fp16 as well.
Doubles gradient(int step) {
  return {step % 3 - 0.75, 0.5 - 0.25 * step, 0.125 * step * step - 0.5};
}

// Six steps from {1, -0.5, 0.25}, the last three with another learning rate.
Doubles after_six_steps(OptimizerOptions options) {
  Doubles x = {1, -0.5, 0.25};
  OptimizerState state;
  for (int step = 0; step < 6; ++step) {
    if (step == 3) options.learning_rate = 0.03;
    Doubles twice = gradient(step);
    for (double& one : twice) one *= 2;
    apply_update(options, DType::float64, bytes_of(x), bytes_of(twice), 0.5, state);
  }
  CHECK(state.steps() == 6);
  return x;
}

OptimizerOptions options_of(OptimizerKind kind) {
  OptimizerOptions options = default_options(kind);
  options.learning_rate = 0.1;
  options.weight_decay = 0.01;
  options.beta1 = 0.8;
  options.beta2 = 0.95;
  options.alpha = 0.9;
  options.epsilon = 1e-6;
  return options;
}

void check_close(const Doubles& got, const Doubles& want) {
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-14));
}

// The expected values are those of torch.optim in float64 (2.13), the same steps.
TEST_CASE("optimizers: six steps give what torch gives") {
  OptimizerOptions options = options_of(OptimizerKind::sgd);
  check_close(after_six_steps(options),
              {0.8985373846405894, -0.5278696647266372, 0.19383518696922733});

  options = options_of(OptimizerKind::momentum);
  check_close(after_six_steps(options),
              {0.9667992149707553, -0.6524938018956554, 0.29300911411113717});
  options.weight_decay = 0;
  options.dampening = 0.2;
  check_close(after_six_steps(options), {1.030740175, -0.6592444500000001, 0.31983975});

  options = options_of(OptimizerKind::nesterov);
  check_close(after_six_steps(options), {0.8683678046707909, -0.6645426729916, 0.2319341327744746});
}

TEST_CASE("optimizers: six steps of those with second moments give what torch gives") {
  OptimizerOptions options = options_of(OptimizerKind::adam);
  check_close(after_six_steps(options),
              {1.067939944857296, -0.7344058488632793, 0.47415108354361324});
  options.amsgrad = true;
  check_close(after_six_steps(options),
              {1.0679837156252663, -0.7327331917198947, 0.4723546783360339});

  options = options_of(OptimizerKind::adamw);
  options.weight_decay = 0.1;
  check_close(after_six_steps(options),
              {1.030260773072783, -0.712812439381046, 0.4603074105234685});

  options = options_of(OptimizerKind::adagrad);
  options.rate_decay = 0.05;
  options.accumulator = 0.3;
  check_close(after_six_steps(options),
              {0.9754466677453085, -0.5601550559282237, 0.30356486229971935});
}

TEST_CASE("optimizers: six steps of each form of rmsprop give what torch gives") {
  OptimizerOptions options = options_of(OptimizerKind::rmsprop);
  check_close(after_six_steps(options),
              {0.895568824574063, -0.7723789970838062, 0.5197666421202504});
  options.weight_decay = 0;
  options.momentum = 0.7;
  check_close(after_six_steps(options),
              {1.1616401178435873, -1.2838504039768919, 1.0298798823209092});
  options.momentum = 0;
  options.centered = true;
  check_close(after_six_steps(options),
              {0.9123587135126457, -0.8109962563203437, 0.553334311836431});
  options.momentum = 0.7;
  options.weight_decay = 0.01;
  check_close(after_six_steps(options),
              {1.1717008921888605, -1.322869566075818, 1.0866164314255018});
}

TEST_CASE("optimizers: a gradient that does not change leaves centered rmsprop finite") {
  OptimizerOptions options = options_of(OptimizerKind::rmsprop);
  options.centered = true;
  std::array<float, 3> x = {1, -0.5f, 0.25f}, g = {0.1f, -1.7f, 33.3f};
  OptimizerState state;
  for (int step = 0; step < 2000; ++step)
    apply_update(options, DType::float32, bytes_of(x), bytes_of(g), 1, state);
  for (const float value : x) CHECK(std::isfinite(value));
}

TEST_CASE("optimizers: fp16 and bf16 values are updated in fp32 and rounded once") {
  const std::array<float, 2> g = {1, -1};
  OptimizerOptions options;
  options.learning_rate = 0.5;
  std::array<std::uint16_t, 2> half = {0x3c00, 0x3c00};  // 1
  OptimizerState state;
  apply_update(options, DType::float16, bytes_of(half), std::as_bytes(std::span(g)), 1, state);
  CHECK(half[0] == 0x3800);  // 0.5
  CHECK(half[1] == 0x3e00);  // 1.5
  std::array<std::uint16_t, 2> brain = {0x3f80, 0x3f80};
  apply_update(options, DType::bfloat16, bytes_of(brain), std::as_bytes(std::span(g)), 1, state);
  CHECK(brain[0] == 0x3f00);
  CHECK(brain[1] == 0x3fc0);
}

TEST_CASE("optimizers: without one the scaled sum replaces the values") {
  const std::array<float, 2> sum = {6, -2};
  std::array<std::uint16_t, 2> half = {0, 0x7e00};
  replace_values(DType::float16, bytes_of(half), std::as_bytes(std::span(sum)), 0.5);
  CHECK(half[0] == 0x4200);  // 3
  CHECK(half[1] == 0xbc00);  // -1
}

TEST_CASE("optimizers: a state that is stored and restored continues as if it had not been") {
  for (const OptimizerKind kind : {OptimizerKind::momentum, OptimizerKind::adam}) {
    const OptimizerOptions options = options_of(kind);
    Doubles x = {1, -0.5, 0.25}, y = x, g = gradient(4);
    OptimizerState state;
    apply_update(options, DType::float64, bytes_of(x), bytes_of(g), 1, state);
    y = x;
    const std::vector<std::byte> kept(state.bytes().begin(), state.bytes().end());
    auto restored = OptimizerState::restored(options, DType::float64, 3, state.steps(), kept);
    REQUIRE(restored);
    apply_update(options, DType::float64, bytes_of(x), bytes_of(g), 1, state);
    apply_update(options, DType::float64, bytes_of(y), bytes_of(g), 1, *restored);
    CHECK(x == y);
    CHECK(restored->steps() == 2);
    CHECK_FALSE(OptimizerState::restored(options, DType::float64, 4, 1, kept));
    CHECK_FALSE(OptimizerState::restored(options, DType::float32, 3, 1, kept));
  }
}

TEST_CASE("optimizers: a state of another kind of optimizer begins anew") {
  Doubles x = {1, -0.5, 0.25}, y = x, g = gradient(4);
  OptimizerState used, fresh;
  apply_update(options_of(OptimizerKind::momentum), DType::float64, bytes_of(x), bytes_of(g), 1,
               used);
  x = y;
  // As many bytes, but another meaning.
  apply_update(options_of(OptimizerKind::adagrad), DType::float64, bytes_of(x), bytes_of(g), 1,
               used);
  apply_update(options_of(OptimizerKind::adagrad), DType::float64, bytes_of(y), bytes_of(g), 1,
               fresh);
  CHECK(x == y);
  CHECK(used.steps() == 1);
}

TEST_CASE("optimizers: an unknown name is an error that lists the known ones") {
  CHECK(optimizer_kind("adamw") == OptimizerKind::adamw);
  CHECK(name_of(OptimizerKind::nesterov) == "nesterov");
  CHECK_THROWS_WITH_AS(
      optimizer_kind("lbfgs"),
      "unknown optimizer 'lbfgs'; known: sgd, momentum, nesterov, adam, adamw, adagrad, rmsprop",
      std::invalid_argument);
}

TEST_CASE("optimizers: the byte form has every option") {
  OptimizerOptions options = default_options(OptimizerKind::rmsprop);
  double value = 0.03125;
  for (double* const field :
       {&options.learning_rate, &options.rescale, &options.weight_decay, &options.momentum,
        &options.dampening, &options.beta1, &options.beta2, &options.alpha, &options.epsilon,
        &options.rate_decay, &options.accumulator})
    *field = value += 0.03125;
  for (const bool flag : {false, true}) {
    options.amsgrad = flag;
    options.centered = !flag;
    CHECK(decode_options(encode(options)) == options);
  }
  const OptionsBytes bytes = encode(options);
  CHECK(bytes[0] == std::byte{7});
  CHECK(bytes[1] == std::byte{1});
  CHECK(bytes[14] == std::byte{0xb0});  // 0.0625 is 0x3fb0000000000000
  CHECK(bytes[15] == std::byte{0x3f});
}

TEST_CASE("optimizers: bytes that are no options are refused") {
  const OptionsBytes good = encode(default_options(OptimizerKind::adam));
  CHECK(decode_options(good));
  CHECK_FALSE(decode_options(std::span(good).first(options_bytes - 1)));
  const auto with = [&](std::size_t at, int value) {
    OptionsBytes bytes = good;
    bytes[at] = std::byte(value);
    return decode_options(bytes);
  };
  CHECK_FALSE(with(0, 0));      // kind
  CHECK_FALSE(with(0, 8));      // kind
  CHECK_FALSE(with(1, 4));      // flags
  CHECK_FALSE(with(5, 1));      // reserved
  CHECK_FALSE(with(15, 0xbf));  // a negative learning rate
  OptimizerOptions bad = default_options(OptimizerKind::adam);
  bad.beta2 = 1;
  CHECK(options_problem(bad) == "adam: beta2 is 1.000000; accepted: at least 0 and below 1");
  CHECK_FALSE(decode_options(encode(bad)));
  bad = {};
  bad.rescale = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(decode_options(encode(bad)));
}

}  // namespace
}  // namespace dpwa::kvstore
