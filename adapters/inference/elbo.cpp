#include "adapters/inference/elbo.h"

#include <torch/types.h>

#include <stdexcept>
#include <string>

namespace dpwa {

Elbo::Elbo(double shard_scale, double kl_scale, std::int64_t rows)
    : shard_scale_(shard_scale), kl_scale_(kl_scale), rows_(rows) {
  if (rows < 1)
    throw std::invalid_argument("Elbo: a worker needs at least one row, not " +
                                std::to_string(rows));
}

Elbo Elbo::averaged(const Place& place, std::int64_t rows) {
  return {static_cast<double>(place.size), 1, rows};
}

Elbo Elbo::summed(const Place& place, std::int64_t rows) {
  return {1, 1 / static_cast<double>(place.size), rows};
}

Elbo Elbo::weighted(double weight, std::int64_t rows) {
  if (!(weight > 0 && weight <= 1))
    throw std::invalid_argument("Elbo: the weight of a worker is above 0 and at most 1, not " +
                                std::to_string(weight));
  return {1 / weight, 1, rows};
}

double Elbo::data_scale(std::int64_t batch_rows) const {
  if (batch_rows < 1 || batch_rows > rows_)
    throw std::invalid_argument("Elbo: a batch of " + std::to_string(batch_rows) +
                                " rows of a shard of " + std::to_string(rows_) +
                                "; accepted: 1 to " + std::to_string(rows_));
  return shard_scale_ * static_cast<double>(rows_) / static_cast<double>(batch_rows);
}

at::Tensor Elbo::loss(const ElboTerms& terms, std::int64_t batch_rows) const {
  const double of_rows = data_scale(batch_rows);
  at::Tensor sum;
  const auto add = [&sum](const at::Tensor& term, double scale) {
    if (!term.defined()) return;
    const at::Tensor scaled = term.sum() * scale;
    sum = sum.defined() ? sum + scaled : scaled;
  };
  add(terms.nll, of_rows);
  add(terms.local_kl, of_rows);
  add(terms.global_kl, kl_scale_);
  if (!sum.defined()) throw std::invalid_argument("Elbo: there is no term; accepted: at least one");
  return sum;
}

}  // namespace dpwa
