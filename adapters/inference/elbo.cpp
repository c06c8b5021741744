#include "adapters/inference/elbo.h"

#include <torch/types.h>

#include <cmath>
#include <stdexcept>
#include <string>

namespace dpwa {
namespace {

// One value for each row tells how many there are.
void check_rows(const at::Tensor& term, const std::string& name, std::int64_t batch_rows) {
  if (!term.defined() || term.dim() != 1 || term.numel() == 1 || term.numel() == batch_rows) return;
  throw std::invalid_argument("Elbo: " + name + " has values for " + std::to_string(term.numel()) +
                              " rows, the batch is said to have " + std::to_string(batch_rows) +
                              "; accepted: loss(terms, rows of the batch)");
}

}  // namespace

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
  if (!(weight > 0 && weight <= 1 && std::isfinite(1 / weight)))
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
    const bool short_type = term.scalar_type() == at::kHalf || term.scalar_type() == at::kBFloat16;
    const at::Tensor scaled = (short_type ? term.sum(at::kFloat) : term.sum()) * scale;
    sum = sum.defined() ? sum + scaled : scaled;
  };
  check_rows(terms.nll, "nll", batch_rows);
  check_rows(terms.local_kl, "local_kl", batch_rows);
  add(terms.nll, of_rows);
  add(terms.local_kl, of_rows);
  add(terms.global_kl, kl_scale_);
  if (!sum.defined()) throw std::invalid_argument("Elbo: there is no term; accepted: at least one");
  return sum;
}

}  // namespace dpwa
