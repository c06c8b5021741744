#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "interpolation/kernels/updates.h"
#include "test/interpolation/kernels/reference.h"

using namespace dpwa;
using namespace dpwa::test;
using kernels::Update;
using kernels::UpdateKernels;
using kernels::UpdateTerms;

namespace {

constexpr std::size_t kSizes[] = {0, 1, 15, 31, 32, 33, 64, 100, 1001};

const UpdateKernels& updates_of(const kernels::Variant& variant, DType dtype) {
  const kernels::UpdateTable& table = variant.kernels->updates;
  if (dtype == DType::float64) return table.float64;
  if (dtype == DType::float16) return table.float16;
  return dtype == DType::float32 ? table.float32 : table.bfloat16;
}

DType wide(DType dtype) {
  return dtype == DType::float64 ? DType::float64 : DType::float32;
}

// `count` elements of fp32 or fp64 in [low, high), the same for the same seed.
Bytes uniform(DType dtype, std::size_t count, double low, double high, unsigned seed) {
  Bytes bytes;
  std::uint64_t state = seed + 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double value = low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53;
    if (dtype == DType::float64) {
      append(bytes, value);
    } else {
      append(bytes, static_cast<float>(value));
    }
  }
  return bytes;
}

// Values of the store's own type, from the fp32 or fp64 of uniform().
Bytes stored(DType dtype, std::size_t count, unsigned seed) {
  const Bytes sums = uniform(wide(dtype), count, -2, 2, seed);
  Bytes values(count * size_of(dtype));
  UpdateTerms terms;
  kernels::update(Update::replace, dtype, values, sums, {}, terms);
  return values;
}

// The rules of update_terms.h, one element at a time.
template <class Scalar>
Scalar reference_update(Update update, Scalar x, Scalar sum, std::array<Scalar*, 3> state,
                        const UpdateTerms& terms) {
  const auto s = [](double value) { return static_cast<Scalar>(value); };
  const auto root_of = [](Scalar value) { return std::sqrt(value); };
  const Scalar g0 = sum * s(terms.scale);
  if (update == Update::replace) return g0;
  const Scalar g = g0 + x * s(terms.weight_decay);
  const Scalar rate = s(terms.rate), epsilon = s(terms.epsilon);
  Scalar* const first = state[0];
  const auto mix = [&](Scalar& moment, double decay, Scalar fresh) {
    moment = moment * s(decay) + fresh;
  };
  switch (update) {
    case Update::sgd:
      return x - g * rate;
    case Update::momentum:
      mix(*first, terms.decay1, g * s(terms.fresh1));
      return x - *first * rate;
    case Update::nesterov:
      mix(*first, terms.decay1, g * s(terms.fresh1));
      return x - (g + *first * s(terms.decay1)) * rate;
    case Update::adam:
    case Update::amsgrad: {
      mix(*first, terms.decay1, g * s(terms.fresh1));
      mix(*state[1], terms.decay2, g * g * s(terms.fresh2));
      Scalar second = *state[1];
      if (update == Update::amsgrad) second = *state[2] = std::max(*state[2], second);
      return x * s(terms.keep) - *first * rate / (root_of(second) * s(terms.root) + epsilon);
    }
    case Update::adagrad:
      *first += g * g;
      return x - g * rate / (root_of(*first) + epsilon);
    default:
      break;
  }
  const bool centered =
      update == Update::rmsprop_centered || update == Update::rmsprop_centered_momentum;
  mix(*first, terms.decay2, g * g * s(terms.fresh2));
  Scalar square = *first;
  if (centered) {
    mix(*state[1], terms.decay1, g * s(terms.fresh1));
    square = std::max(square - *state[1] * *state[1], Scalar{0});
  }
  const Scalar root = root_of(square) + epsilon;
  if (update == Update::rmsprop || update == Update::rmsprop_centered) return x - g * rate / root;
  Scalar& velocity = *state[centered ? 2 : 1];
  mix(velocity, terms.momentum, g / root);
  return x - velocity * rate;
}

UpdateTerms some_terms() {
  return {.scale = 0.25,
          .weight_decay = 0.01,
          .keep = 0.999,
          .rate = 0.05,
          .decay1 = 0.9,
          .fresh1 = 0.1,
          .decay2 = 0.99,
          .fresh2 = 0.01,
          .root = 1.25,
          .epsilon = 1e-3,
          .momentum = 0.8};
}

template <class Scalar>
void compare_with_reference(const kernels::Variant& variant, DType dtype, Update update,
                            std::size_t count) {
  const UpdateTerms terms = some_terms();
  const std::size_t states = kernels::state_count(update);
  Bytes want = stored(dtype, count, 3);
  Bytes state_bytes[3];
  std::vector<Placed> placed;
  for (unsigned k = 0; k < 3; ++k) state_bytes[k] = uniform(wide(dtype), count, 0.5, 2, 10 + k);
  for (std::size_t k = 0; k < states; ++k) placed.emplace_back(state_bytes[k], 4 * k + 1);
  Placed values(want, 3);
  Bytes sum = uniform(wide(dtype), count, -3, 3, 5);
  std::byte* arrays[3] = {};
  for (std::size_t k = 0; k < states; ++k) arrays[k] = placed[k].data();
  updates_of(variant, dtype)
      .update[static_cast<std::size_t>(update)](values.data(), sum.data(), arrays, count, terms);

  const Bytes got = values.bytes();
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<Scalar>(decode(dtype, want.data() + i * size_of(dtype)));
    Scalar g, elements[3];
    std::memcpy(&g, sum.data() + i * sizeof g, sizeof g);
    for (int k = 0; k < 3; ++k)
      std::memcpy(&elements[k], state_bytes[k].data() + i * sizeof g, sizeof g);
    const Scalar moved =
        reference_update<Scalar>(update, x, g, {&elements[0], &elements[1], &elements[2]}, terms);
    CHECK(same(decode(dtype, got.data() + i * size_of(dtype)), rounded(dtype, moved)));
    for (std::size_t k = 0; k < states; ++k) {
      Scalar state;
      std::memcpy(&state, arrays[k] + i * sizeof g, sizeof g);
      CHECK(same(state, elements[k]));
    }
  }
  CHECK(values.surroundings_untouched());
  for (const Placed& state : placed) CHECK(state.surroundings_untouched());
}

}  // namespace

TEST_CASE("every variant's updates move every element as the rule says, and nothing else") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : kFloatingTypes) {
      for (std::size_t update = 0; update < kernels::update_count; ++update) {
        for (const std::size_t count : kSizes) {
          CAPTURE(variant.name);
          CAPTURE(name_of(dtype));
          CAPTURE(update);
          CAPTURE(count);
          if (dtype == DType::float64) {
            compare_with_reference<double>(variant, dtype, Update(update), count);
          } else {
            compare_with_reference<float>(variant, dtype, Update(update), count);
          }
        }
      }
    }
  }
}

TEST_CASE("every variant's sums add the weighted parts in their order, fp16 and bf16 in fp32") {
  const double weights[] = {0.5, 2, 1, -0.125};
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : kFloatingTypes) {
      for (const std::size_t part_count : {0, 1, 2, 4}) {
        for (const std::size_t count : kSizes) {
          for (const bool onto : {false, true}) {
            CAPTURE(variant.name);
            CAPTURE(name_of(dtype));
            CAPTURE(part_count);
            CAPTURE(count);
            CAPTURE(onto);
            std::vector<Bytes> parts;
            std::vector<const std::byte*> pointers;
            for (unsigned p = 0; p < part_count; ++p) parts.push_back(stored(dtype, count, p));
            for (const Bytes& part : parts) pointers.push_back(part.data());
            const Bytes before = uniform(wide(dtype), count, -1, 1, 77);
            Placed sum(before, 1);
            CHECK(updates_of(variant, dtype)
                      .sum(sum.data(), pointers.data(), weights, part_count, count, onto));
            const Bytes got = sum.bytes();
            const std::size_t size = size_of(wide(dtype));
            for (std::size_t i = 0; i < count; ++i) {
              double total = onto ? decode(wide(dtype), before.data() + i * size) : 0;
              for (std::size_t p = 0; p < part_count; ++p) {
                const double part = decode(dtype, parts[p].data() + i * size_of(dtype));
                // The weights are powers of two: the products are exact.
                total = rounded(wide(dtype), total + weights[p] * part);
              }
              CHECK(decode(wide(dtype), got.data() + i * size) == total);
            }
            CHECK(sum.surroundings_untouched());
          }
        }
      }
    }
  }
}

TEST_CASE("a sum with one element that is not finite says so, wherever it is") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : kFloatingTypes) {
      for (const std::size_t at : {0, 31, 32, 99, 100}) {
        CAPTURE(variant.name);
        CAPTURE(name_of(dtype));
        CAPTURE(at);
        const std::size_t count = 101;
        Bytes part = stored(dtype, count, 1);
        const Bytes other = stored(dtype, count, 2);
        UpdateTerms infinite;
        infinite.scale = std::numeric_limits<double>::infinity();
        Bytes one = uniform(wide(dtype), 1, 1, 2, 9), bad(size_of(dtype));
        kernels::update(Update::replace, dtype, bad, one, {}, infinite);
        std::memcpy(part.data() + at * size_of(dtype), bad.data(), bad.size());
        Bytes sum(count * size_of(wide(dtype)));
        const double weights[] = {1, 1};
        const std::byte* const parts[] = {other.data(), part.data()};
        const UpdateKernels& passes = updates_of(variant, dtype);
        CHECK(passes.sum(sum.data(), parts, weights, 1, count, false));
        CHECK_FALSE(passes.sum(sum.data(), parts, weights, 2, count, false));
        CHECK_FALSE(passes.sum(sum.data(), parts, weights, 0, count, true));
      }
    }
  }
}

TEST_CASE("sums and updates refuse integers and lengths that do not fit") {
  Bytes sum(8), values(8), cut(7);
  const std::byte* const parts[] = {values.data()};
  const double weights[] = {1, 1};
  CHECK_THROWS_AS(kernels::sum(DType::int32, sum, parts, std::span(weights).first(1)),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::sum(DType::float32, sum, parts, weights), std::invalid_argument);
  CHECK_THROWS_AS(kernels::sum(DType::float16, cut, parts, std::span(weights).first(1)),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::update(Update::sgd, DType::float16, values, sum, {}, {}),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::update(Update::momentum, DType::float32, values, sum, {}, {}),
                  std::invalid_argument);
}
