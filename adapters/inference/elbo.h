#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "adapters/adapter_types.h"

namespace dpwa {

// The parts of −ELBO that one worker computes, from draws of q or in closed form. Each is its sum
// or a tensor that adds up to it; a vector of the rows' own values is checked against their number.
// An undefined tensor is left out. Factors of the program, such as a tempered KL, stay in them:
// Elbo multiplies.
struct ElboTerms {
  at::Tensor nll;  // −Σ log p(y_n | z) over the rows of the batch
  at::Tensor
      local_kl;  // Σ (log q(z_n) − log p(z_n)) over the rows, of latents with one value a row
  at::Tensor global_kl;  // log q(z) − log p(z) of latents that all rows share: prior and entropy
};

// The objective of stochastic variational inference for any number of workers. Each worker has a
// shard of the data (adapters/inference/split_data.h); together they minimise
//
//   −ELBO = Σ_n (NLL_n + local KL_n) + KL(q ‖ p)
//
// in which the rows of all shards count once, and so do prior and entropy. This object scales the
// terms of one worker, by how the gradients are combined:
//
//   averaged   K (NLL_k + local KL_k) + KL      what the back ends of adapter.h do
//   summed       (NLL_k + local KL_k) + KL / K  for programs that add up gradients or losses
//   weighted     (NLL_k + local KL_k) / w + KL  averaged with weight w, Σ w = 1: set_batch_size()
//
// A parameter server without merged steps (kvstore.type dist_async, or dist_ssp with a large
// staleness) counts each worker by its pace instead, so the objective is then not exact.
//
// A minibatch of b rows stands for the shard of N_k rows: its terms count N_k / b times. A value;
// made again when Adapter::place() changes.
class Elbo {
 public:
  // `rows`: of the shard of this worker. Throw std::invalid_argument for 0 rows.
  static Elbo averaged(const Place& place, std::int64_t rows);
  static Elbo summed(const Place& place, std::int64_t rows);
  static Elbo weighted(double weight, std::int64_t rows);

  // A scalar, for backward(). `batch_rows`: those that the terms are of. Throws
  // std::invalid_argument when there are none, more than the shard has, another number than a term
  // has values for rows, or no term.
  at::Tensor loss(const ElboTerms& terms, std::int64_t batch_rows) const;
  at::Tensor loss(const ElboTerms& terms) const { return loss(terms, rows_); }  // of all rows

  double data_scale(std::int64_t batch_rows) const;  // of nll and local_kl
  double kl_scale() const { return kl_scale_; }      // of global_kl
  std::int64_t rows() const { return rows_; }

 private:
  Elbo(double shard_scale, double kl_scale, std::int64_t rows);

  double shard_scale_;
  double kl_scale_;
  std::int64_t rows_;
};

}  // namespace dpwa
