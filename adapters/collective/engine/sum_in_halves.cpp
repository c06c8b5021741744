#include "adapters/collective/engine/sum_in_halves.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "adapters/collective/engine/exchange.h"
#include "adapters/collective/engine/tensor_form.h"

namespace dpwa::collective {
namespace {

at::ScalarType type_of(Compression compression) {
  return compression == Compression::fp16 ? at::kHalf : at::kBFloat16;
}

// The largest magnitude among the finite elements; 0 where there are none.
double largest_finite(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  const auto [low, high] = at::aminmax(tensor);
  const double least = low.item<double>();
  const double most = high.item<double>();
  if (std::isfinite(least) && std::isfinite(most)) return std::max(-least, most);
  const auto finite = at::where(at::isfinite(tensor), tensor, at::zeros({}, tensor.options()));
  return largest_finite(finite);
}

int exponent_for(const at::Tensor& tensor, Compression compression) {
  if (compression != Compression::fp16) return 0;
  constexpr int top = 15;       // of fp16, whose values stay below 2^16
  constexpr int lowest = -100;  // 2^-lowest is still far from overflowing float32
  int exponent = 0;             // the largest is below 2^exponent
  const double largest = largest_finite(tensor);
  if (largest == 0) return 0;
  std::frexp(largest, &exponent);
  return std::max(exponent, lowest) - top;
}

double power_of_two(int exponent) {
  return std::ldexp(1.0, exponent);
}

// A row of halves, with its exponent as one more half: small integers are exact in both types.
int exponent_of(const at::Tensor& row) {
  return static_cast<int>(row.select(0, row.numel() - 1).item<float>());
}

}  // namespace

Halves to_halves(const at::Tensor& tensor, Compression compression) {
  const int exponent = exponent_for(tensor, compression);
  auto scaled = exponent == 0 ? tensor : tensor.mul(power_of_two(-exponent));
  return {scaled.to(type_of(compression)), exponent};
}

void sum_in_halves(const ProcessGroup& group, at::Tensor& flat, Compression compression,
                   double scale) {
  const std::int64_t size = group.size();
  const std::int64_t count = flat.numel();
  const std::int64_t part = (count + size - 1) / size;
  const auto part_of = [&](std::int64_t row) {  // of few elements, the last rows have none
    const std::int64_t from = std::min(row * part, count);
    return flat.narrow(0, from, std::min(part, count - from));
  };
  const auto halves = at::zeros({size, part + 1}, flat.options().dtype(type_of(compression)));
  const int own_exponent = exponent_for(flat, compression);
  if (own_exponent != 0) flat.mul_(power_of_two(-own_exponent));
  for (std::int64_t row = 0; row < size; ++row) {
    const at::Tensor own = part_of(row);
    halves.select(0, row).narrow(0, 0, own.numel()).copy_(own);
  }
  halves.select(1, part).fill_(own_exponent);

  const auto received = at::empty_like(halves);
  exchange_rows(group, bytes_of(received), bytes_of(halves));

  auto sum = at::zeros({part}, flat.options());
  for (std::int64_t row = 0; row < size; ++row) {
    const auto from = received.select(0, row);
    sum.add_(from.narrow(0, 0, part).to(at::kFloat), scale * power_of_two(exponent_of(from)));
  }
  const auto [values, exponent] = to_halves(sum, compression);
  const auto own = received.select(0, 0);  // it has been read
  own.narrow(0, 0, part).copy_(values);
  own.narrow(0, part, 1).fill_(exponent);
  gather_equal(group, bytes_of(halves), bytes_of(own));
  for (std::int64_t row = 0; row < size; ++row) {
    const auto from = halves.select(0, row);
    at::Tensor all = part_of(row);
    all.copy_(from.narrow(0, 0, all.numel())).mul_(power_of_two(exponent_of(from)));
  }
}

}  // namespace dpwa::collective
