#include "adapters/inference/elbo.h"

#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/inference/densities.h"
#include "adapters/inference/gaussian_posterior.h"
#include "adapters/inference/split_data.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/inference/conjugate_models.h"

namespace dpwa {
namespace {

using test::exact;
using test::largest_difference;
using test::LinearRegression;
using test::minimise;
using test::NormalMean;
using test::seeded;
using test::values;

enum class Combined { summed, averaged, weighted };

// Mistakes in the objective of a worker. Each test of the right objective is repeated with them,
// to show what it would notice.
enum class Mistake {
  none,
  kl_in_full,          // summed: every worker adds the whole KL
  entropy_in_full,     // summed: every worker adds its share of the prior, but the whole entropy
  no_sum,              // averaged: the rows count as in one process
  local_kl_as_shared,  // the KL of latents of the rows is scaled like that of shared ones
};

struct Workers {
  Combined combined = Combined::summed;
  std::size_t count = 1;
  Mistake mistake = Mistake::none;

  Elbo elbo(std::size_t rank, std::int64_t rows, std::int64_t all_rows) const {
    if (combined == Combined::summed) return Elbo::summed({rank, count}, rows);
    if (combined == Combined::weighted) return Elbo::weighted(weight(rows, all_rows), rows);
    return Elbo::averaged({rank, mistake == Mistake::no_sum ? 1 : count}, rows);
  }
  double weight(std::int64_t rows, std::int64_t all_rows) const {
    if (combined == Combined::summed) return 1;
    if (combined == Combined::averaged) return 1 / static_cast<double>(count);
    return static_cast<double>(rows) / static_cast<double>(all_rows);
  }

  // What the workers minimise together.
  using TermsOf = std::function<ElboTerms(const std::vector<at::Tensor>& shard)>;
  at::Tensor objective(const GaussianPosterior& shared, const std::vector<at::Tensor>& data,
                       const TermsOf& terms_of) const {
    at::Tensor total = torch::zeros({}, torch::kDouble);
    const std::int64_t all_rows = data[0].size(0);
    for (std::size_t rank = 0; rank < count; ++rank) {
      const auto shard = split_data(data, {rank, count});
      const std::int64_t rows = shard[0].size(0);
      ElboTerms terms = terms_of(shard);
      const auto factor = static_cast<double>(count);
      if (mistake == Mistake::kl_in_full) terms.global_kl = terms.global_kl * factor;
      if (mistake == Mistake::entropy_in_full)
        terms.global_kl = terms.global_kl - (factor - 1) * shared.entropy();
      total = total + weight(rows, all_rows) * elbo(rank, rows, all_rows).loss(terms);
    }
    return total;
  }
};

struct Fit {
  double mean, variance;
};

Fit fit_normal_mean(const Workers& workers) {
  const NormalMean model;
  const MeanFieldGaussian q(values({0.3}), 0.5);
  minimise(q.parameters(), [&] {
    return workers.objective(q, {model.y},
                             [&](const auto& shard) { return NormalMean::terms(q, shard[0]); });
  });
  return {q.mean().item<double>(), q.variance().item<double>()};
}

bool is_near(const Fit& fit, double mean, double variance) {
  return std::abs(fit.mean - mean) < exact && std::abs(fit.variance - variance) < exact;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("one to four workers find the posterior of one process, however gradients combine") {
  for (const Combined combined : {Combined::summed, Combined::averaged, Combined::weighted}) {
    for (std::size_t count = 1; count <= 4; ++count) {  // three workers have 3, 3 and 2 rows
      INFO("workers: " << count << ", combined: " << static_cast<int>(combined));
      const Fit fit = fit_normal_mean({combined, count});
      CHECK(fit.mean == doctest::Approx(16.0 / 9).epsilon(exact));
      CHECK(fit.variance == doctest::Approx(1.0 / 9).epsilon(exact));
    }
  }
}

TEST_CASE("a mistake in the scale of a term gives the wrong posterior that it is known by") {
  const auto summed = [](std::size_t count, Mistake mistake) {
    return fit_normal_mean({Combined::summed, count, mistake});
  };
  CHECK(is_near(summed(2, Mistake::kl_in_full), 1.6, 0.2));
  CHECK(is_near(summed(4, Mistake::kl_in_full), 4.0 / 3, 1.0 / 3));
  CHECK(is_near(summed(2, Mistake::entropy_in_full), 16.0 / 9, 2.0 / 9));
  CHECK(is_near(summed(4, Mistake::entropy_in_full), 16.0 / 9, 4.0 / 9));
  CHECK(is_near(fit_normal_mean({Combined::averaged, 2, Mistake::no_sum}), 1.6, 0.2));
  CHECK(is_near(fit_normal_mean({Combined::averaged, 4, Mistake::no_sum}), 4.0 / 3, 1.0 / 3));
}

TEST_CASE(
    "a full covariance is the inverse precision, a mean-field variance its inverse diagonal") {
  for (const std::int64_t rows : {60, 61}) {
    for (std::size_t count = 1; count <= 4; ++count) {
      INFO("rows: " << rows << ", workers: " << count);
      const LinearRegression model(rows);
      const auto fit = [&](const GaussianPosterior& q, Combined combined) {
        const Workers workers{combined, count};
        minimise(q.parameters(), [&] {
          return workers.objective(q, {model.x, model.y}, [&](const auto& shard) {
            return LinearRegression::terms(q, shard[0], shard[1]);
          });
        });
      };
      const FullGaussian full(torch::zeros({3}, torch::kDouble), 0.1);
      fit(full, Combined::averaged);
      CHECK(largest_difference(full.mean(), model.mean()) < exact);
      CHECK(largest_difference(full.covariance(), model.precision().inverse()) < exact);
      const MeanFieldGaussian mean_field(torch::zeros({3}, torch::kDouble), 0.1);
      fit(mean_field, Combined::summed);
      CHECK(largest_difference(mean_field.mean(), model.mean()) < exact);
      CHECK(largest_difference(mean_field.variance(), 1 / model.precision().diagonal()) < exact);
    }
  }
}

// y_n ~ N(z + z_n, 1), z and all z_n ~ N(0, 1). A mean-field q has the means of the posterior, for
// z 8/5, and the variances 1/9 and 1/2.
TEST_CASE("latents of the rows follow the scale of the data") {
  const auto fit = [](const Workers& workers) {
    const NormalMean model;
    const MeanFieldGaussian shared(values({0.3}), 0.5);
    const MeanFieldGaussian own(torch::zeros({8}, torch::kDouble), 0.5);
    auto parameters = shared.parameters();
    for (const auto& parameter : own.parameters()) parameters.push_back(parameter);
    minimise(parameters, [&] {
      at::Tensor total = torch::zeros({}, torch::kDouble);
      std::int64_t from = 0;
      for (std::size_t rank = 0; rank < workers.count; ++rank) {
        const Place place{rank, workers.count};
        const auto y = split_data(model.y, place);
        const std::int64_t rows = y.size(0);
        const auto part = [&](const at::Tensor& of_all) { return of_all.narrow(0, from, rows); };
        const auto mean = part(own.mean()), log_sd = part(own.scale());
        const auto variance = (2 * log_sd).exp();
        ElboTerms terms;
        terms.nll =
            0.5 * ((y - shared.mean() - mean).square() + shared.variance() + variance).sum();
        terms.local_kl = (0.5 * (mean.square() + variance - 1) - log_sd).sum();
        terms.global_kl = shared.kl_to_normal(0, 1);
        if (workers.mistake == Mistake::local_kl_as_shared)
          terms.local_kl = terms.local_kl / static_cast<double>(workers.count);
        const Elbo elbo = workers.elbo(rank, rows, 8);
        total = total + workers.weight(rows, 8) * elbo.loss(terms);
        from += rows;
      }
      return total;
    });
    CHECK(largest_difference(own.variance(), own.variance()[0].expand({8})) < exact);
    return std::vector<double>{shared.mean().item<double>(), shared.variance().item<double>(),
                               own.variance()[0].item<double>()};
  };
  for (std::size_t count = 1; count <= 4; ++count) {
    for (const Combined combined : {Combined::summed, Combined::averaged, Combined::weighted}) {
      const auto found = fit({combined, count});
      CHECK(found[0] == doctest::Approx(1.6).epsilon(exact));
      CHECK(found[1] == doctest::Approx(1.0 / 9).epsilon(exact));
      CHECK(found[2] == doctest::Approx(0.5).epsilon(exact));
    }
  }
  const auto mistaken = fit({Combined::summed, 2, Mistake::local_kl_as_shared});
  CHECK(mistaken[0] == doctest::Approx(16.0 / 11).epsilon(exact));
  CHECK(mistaken[2] == doctest::Approx(1.0 / 3).epsilon(exact));
}

TEST_CASE("the gradients of all minibatches of a shard add up to that of the shard") {
  const auto x = torch::randn({10, 2}, seeded(3), torch::kDouble);
  const auto y = (x.sum(1) > 0).to(torch::kDouble);
  const MeanFieldGaussian q(values({0.4, -0.2}), 0.3);
  const auto gradient = [&](std::int64_t from, std::int64_t rows, bool scaled) {
    const auto weights = q.draw(1, seeded(5))[0];  // the same draw each time
    const auto logits = x.narrow(0, from, rows).mv(weights);
    const ElboTerms terms{
        -log_bernoulli(y.narrow(0, from, rows), logits), {}, q.kl_to_normal(0, 1)};
    const Elbo elbo = Elbo::averaged({0, 2}, scaled ? 10 : rows);
    return torch::autograd::grad({elbo.loss(terms, rows)}, {q.mean()})[0];
  };
  const auto whole = gradient(0, 10, true);
  const auto weighed = [&](bool scaled) {  // batches of 4, 4 and 2 rows
    return 0.4 * gradient(0, 4, scaled) + 0.4 * gradient(4, 4, scaled) +
           0.2 * gradient(8, 2, scaled);
  };
  CHECK(largest_difference(weighed(true), whole) < 1e-12);
  CHECK(largest_difference(weighed(false), whole) > 1e-3);  // N_k / b forgotten
}

TEST_CASE("a minibatch stands for its shard, and its latents for those of the shard") {
  const Elbo elbo = Elbo::averaged({0, 3}, 10);
  ElboTerms terms{values({1, 2}), values({0.5, 0.25}), values({4})};
  CHECK(elbo.loss(terms, 2).item<double>() == doctest::Approx(3 * 5 * 3.75 + 4));
  CHECK(refusal([&] { elbo.loss(terms); }) ==
        "Elbo: nll has values for 2 rows, the batch is said to have 10; accepted: loss(terms, rows "
        "of the batch)");
  terms.nll = terms.nll.sum();
  CHECK(refusal([&] { elbo.loss(terms, 5); }).starts_with("Elbo: local_kl has values for 2 rows"));
  CHECK(refusal([&] { elbo.loss(terms, 0); }).starts_with("Elbo: a batch of 0 rows"));
  // A sum in half precision would end at 65504.
  CHECK(elbo.loss({torch::full({10}, 20000, torch::kHalf), {}, {}}).item<double>() == 600000);
}

TEST_CASE("a factor of the program stays: a tempered KL is the same for any number of workers") {
  const double temper = 0.5;
  for (std::size_t count : {1, 3}) {
    const NormalMean model;
    const MeanFieldGaussian q(values({0.3}), 0.5);
    const Workers workers{Combined::averaged, count};
    minimise(q.parameters(), [&] {
      return workers.objective(q, {model.y}, [&](const auto& shard) {
        ElboTerms terms = NormalMean::terms(q, shard[0]);
        terms.global_kl = temper * terms.global_kl;
        return terms;
      });
    });
    CHECK(q.mean().item<double>() == doctest::Approx(16 / 8.5).epsilon(exact));
    CHECK(q.variance().item<double>() == doctest::Approx(temper / 8.5).epsilon(exact));
  }
}

TEST_CASE("split_data: contiguous rows, sizes that differ by one at most, lists cut alike") {
  const auto x = torch::arange(22, torch::kDouble).reshape({11, 2});
  const auto y = torch::arange(11);
  std::vector<at::Tensor> xs, ys;
  std::vector<std::int64_t> sizes;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto part = split_data({x, y}, {rank, 4});
    xs.push_back(part[0]);
    ys.push_back(part[1]);
    sizes.push_back(part[1].size(0));
  }
  CHECK(sizes == std::vector<std::int64_t>{3, 3, 3, 2});
  CHECK(torch::cat(xs).equal(x));
  CHECK(torch::cat(ys).equal(y));
}

TEST_CASE("bad input gives one line that says what is wrong") {
  const auto rows = torch::zeros({3, 2});
  CHECK(refusal([&] { split_data(rows, {0, 5}); }) ==
        "split_data: tensor 0 of the data has 3 rows for 5 workers, so a worker would have none; "
        "accepted: at least one row for each");
  CHECK(refusal([&] { split_data({rows, torch::zeros({4})}, {0, 2}); }) ==
        "split_data: tensor 1 of the data has 4 rows, where tensor 0 has 3 rows; accepted: the "
        "same number in all");
  CHECK(refusal([&] { split_data(torch::zeros({}), {0, 1}); }) ==
        "split_data: tensor 0 of the data has no rows: it needs an axis 0");
  CHECK(refusal([&] { split_data(std::vector<at::Tensor>{}, {0, 1}); }) ==
        "split_data: there is no data: the list is empty");
  auto damaged = torch::zeros({5, 2});
  damaged[2][1] = std::nan("");
  damaged[4][0] = INFINITY;
  CHECK(refusal([&] { split_data({torch::zeros({5}), damaged}, {0, 2}); }) ==
        "split_data: tensor 1 of the data is not finite in 2 rows, the first is row 2 (counted "
        "from 0)");
  CHECK(refusal([] {
          MeanFieldGaussian(torch::zeros({0}));
        }).starts_with("a posterior without parameters"));
  for (const auto& mean : {torch::zeros({2, 2}), torch::zeros({2}, torch::kLong), at::Tensor()}) {
    const std::string vector =
        "a posterior needs a vector of at least one floating-point number as its first mean, not ";
    const std::string shape = mean.defined() ? words_of_shapes({mean}) : "an undefined tensor";
    CHECK(refusal([&] { MeanFieldGaussian{mean}; }) == vector + shape);
    CHECK(refusal([&] { FullGaussian{mean}; }) == vector + shape);
  }
  CHECK(refusal([] { FullGaussian(torch::zeros({2}, torch::kHalf)); }) ==
        "a full covariance in float16[2] is not offered; accepted: float32 or float64");
  CHECK(refusal([] { MeanFieldGaussian(torch::zeros({2}), 0); }).find("above 0") !=
        std::string::npos);
  CHECK(refusal([] { Elbo::averaged({0, 2}, 0); }) ==
        "Elbo: a worker needs at least one row, not 0");
  CHECK(refusal([] { Elbo::averaged({0, 2}, 4).data_scale(5); }) ==
        "Elbo: a batch of 5 rows of a shard of 4; accepted: 1 to 4");
  CHECK(refusal([] { Elbo::averaged({0, 2}, 4).loss({}); }) ==
        "Elbo: there is no term; accepted: at least one");
  CHECK(refusal([] { Elbo::weighted(0, 4); }).starts_with("Elbo: the weight of a worker"));
  CHECK(refusal([] { Elbo::weighted(1e-320, 4); }).starts_with("Elbo: the weight of a worker"));
  CHECK(refusal([&] { split_data(rows, {0, 0}); }).starts_with("split_data: rank 0 of 0 workers"));
  CHECK(refusal([&] { split_data(rows, {2, 2}); }).starts_with("split_data: rank 2 of 2 workers"));
  CHECK(refusal([&] { split_data(rows.to_sparse(), {0, 2}); }) ==
        "split_data: tensor 0 of the data is sparse; accepted: dense");
  CHECK(refusal([&] { split_data(torch::complex(damaged, damaged), {0, 2}); }).find("2 rows") !=
        std::string::npos);
  CHECK(words_of_shapes({rows, torch::zeros({3}, torch::kDouble)}) == "float32[3, 2], float64[3]");
}

TEST_CASE("what is known of data: shapes, and a checksum that every value changes") {
  const auto x = torch::arange(6, torch::kFloat).reshape({3, 2});
  auto other = x.clone();
  other[2][1] = 5.5;
  CHECK(words_of_data({x, x}) == words_of_data({x.clone(), x.t().contiguous().t()}));
  CHECK(words_of_data({x}).starts_with("float32[3, 2], checksum "));
  CHECK(words_of_data({x}) != words_of_data({other}));
  CHECK(words_of_data({x, other}) != words_of_data({other, x}));
}

TEST_CASE("densities and posteriors refuse shapes and values that have no meaning, in one line") {
  const auto column = torch::zeros({5, 1}), row = torch::zeros({5}), one = torch::zeros({});
  CHECK(refusal([&] { log_normal(column, row, one); }) ==
        "log_normal: the shapes float32[5, 1], float32[5], float32[] would give 25 densities; "
        "accepted: one argument with the shape of the result");
  CHECK(refusal([&] { log_poisson(row, column); }).starts_with("log_poisson: the shapes "));
  CHECK(refusal([&] { log_bernoulli(column, row); }).starts_with("log_bernoulli: the shapes "));
  CHECK(refusal([&] { log_bernoulli(row + 2, row); }).starts_with("log_bernoulli: a value is "));
  CHECK(refusal([&] { log_normal(row, {}, one); }) == "log_normal: an argument is undefined");
  CHECK(log_normal(row.unsqueeze(0), torch::zeros({4, 5}), one).sizes() ==
        std::vector<std::int64_t>{4, 5});

  const MeanFieldGaussian q(torch::zeros({3}));
  const FullGaussian full(torch::zeros({3}));
  CHECK(refusal([&] { q.draw(0); }) == "draw: 0 draws of a posterior; accepted: at least 1");
  CHECK(refusal([&] { q.draw(-1); }) == "draw: -1 draws of a posterior; accepted: at least 1");
  for (const double sd : {0.0, -1.0, std::nan("")})
    CHECK(refusal([&] { q.kl_to_normal(0, sd); }).find("above 0") != std::string::npos);
  CHECK(refusal([&] { q.kl_to_normal(std::nan(""), 1); }).find("finite") != std::string::npos);
  CHECK(refusal([&] { q.kl_to_normal(torch::zeros({3, 1}), torch::ones({3})); }) ==
        "kl_to_normal: the mean of the prior is float32[3, 1]; accepted: one number, or 3");
  CHECK(refusal([&] {
          q.kl_to_normal(torch::zeros({3}), torch::ones({5}));
        }).starts_with("kl_to_normal: the standard deviation of the prior is float32[5]"));
  for (const GaussianPosterior* posterior :
       {static_cast<const GaussianPosterior*>(&q), static_cast<const GaussianPosterior*>(&full)}) {
    CHECK(refusal([&] { posterior->log_density(column); }) ==
          "log_density: the values are float32[5, 1], the posterior is over 3; accepted: rows of "
          "that many");
  }
}

}  // namespace dpwa
