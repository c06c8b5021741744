#include "adapters/inference/gaussian_posterior.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <memory>

#include "adapters/inference/densities.h"
#include "adapters/inference/elbo.h"
#include "adapters/inference/split_data.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/inference/conjugate_models.h"

namespace dpwa {
namespace {

using test::exact;
using test::largest_difference;
using test::LinearRegression;
using test::minimise;
using test::seeded;
using test::values;

}  // namespace

TEST_CASE("log densities have their known values") {
  const auto value = [](const at::Tensor& tensor) { return tensor.item<double>(); };
  const auto log = [](double x) { return std::log(x); };
  CHECK(value(log_normal(values({3}), values({1}), values({log(2)}))) ==
        doctest::Approx(-0.5 - log(2) - 0.5 * log(2 * 3.14159265358979)));
  CHECK(value(log_bernoulli(values({1}), values({log(3)}))) == doctest::Approx(log(0.75)));
  CHECK(value(log_bernoulli(values({0}), values({log(3)}))) == doctest::Approx(log(0.25)));
  CHECK(value(log_poisson(values({3}), values({log(2)}))) == doctest::Approx(log(8.0 / 6) - 2));
  const auto scores = values({log(1), log(2), log(5)}).unsqueeze(0);
  CHECK(value(log_categorical(torch::tensor({2}), scores)) == doctest::Approx(log(5.0 / 8)));
  CHECK_THROWS(log_categorical(torch::tensor({-100}), scores));  // not a class to leave out
}

TEST_CASE("posteriors: density, entropy and divergence are those of their mean and covariance") {
  FullGaussian full(values({1, -1, 0.5}), 0.7);
  MeanFieldGaussian mean_field(values({1, -1, 0.5}), 0.7);
  {
    const torch::NoGradGuard no_gradients;
    full.scale().add_(0.3 * torch::randn({3, 3}, seeded(7), torch::kDouble));
    mean_field.scale().add_(values({0.2, -0.4, 0.1}));
  }
  for (GaussianPosterior* q :
       {static_cast<GaussianPosterior*>(&full), static_cast<GaussianPosterior*>(&mean_field)}) {
    const auto covariance = q->covariance();
    CHECK(largest_difference(q->variance(), covariance.diagonal()) < 1e-12);
    const double log_volume = torch::logdet(2 * 3.14159265358979323846 * covariance).item<double>();
    CHECK(q->entropy().item<double>() == doctest::Approx(1.5 + 0.5 * log_volume));

    const auto z = torch::randn({2, 4, 3}, seeded(9), torch::kDouble);
    const auto away = (z - q->mean()).reshape({-1, 3});
    const auto expected =
        -0.5 * ((away.mm(covariance.inverse()) * away).sum(1) + log_volume).reshape({2, 4});
    CHECK(largest_difference(q->log_density(z), expected) < 1e-10);

    const auto prior_mean = values({0.1, 0.2, 0.3}), prior_sd = values({1.5, 0.5, 2});
    const auto off = q->mean() - prior_mean;
    const auto divergence =
        0.5 * ((covariance.diagonal() + off.square()) / prior_sd.square()).sum() - 1.5 +
        prior_sd.log().sum() - 0.5 * torch::logdet(covariance);
    CHECK(q->kl_to_normal(prior_mean, prior_sd).item<double>() ==
          doctest::Approx(divergence.item<double>()));

    const auto draws = q->draw(40000, seeded(13));
    CHECK(largest_difference(draws.mean(0), q->mean()) < 0.02);
    CHECK(largest_difference(torch::cov(draws.t()), covariance) < 0.02);
    draws.sum().backward();  // the mean moves each draw with it
    CHECK(q->mean().grad()[0].item<double>() == doctest::Approx(40000));
    CHECK(q->scale().grad().abs().max().item<double>() > 0);
  }
}

TEST_CASE("natural parameters and back is the same posterior, and no Gaussian is refused") {
  FullGaussian full(values({1, -1}), 0.7);
  MeanFieldGaussian mean_field(values({1, -1}), 0.7);
  for (GaussianPosterior* q :
       {static_cast<GaussianPosterior*>(&full), static_cast<GaussianPosterior*>(&mean_field)}) {
    const auto mean = q->mean().clone(), covariance = q->covariance();
    auto natural = q->natural();
    const auto precision =
        natural.precision.dim() == 1 ? torch::diag(natural.precision) : natural.precision;
    CHECK(largest_difference(precision, covariance.inverse()) < 1e-12);
    CHECK(largest_difference(natural.weighted_mean, precision.mv(mean)) < 1e-12);
    CHECK(q->set_natural(natural));
    CHECK(largest_difference(q->mean(), mean) < 1e-12);
    CHECK(largest_difference(q->covariance(), covariance) < 1e-12);

    const auto kept = q->scale().clone();
    CHECK_FALSE(q->set_natural({natural.weighted_mean, -natural.precision}));
    CHECK_FALSE(q->set_natural({natural.weighted_mean, 0 * natural.precision}));
    CHECK_FALSE(q->set_natural({natural.weighted_mean / 0, natural.precision}));
    CHECK(q->scale().equal(kept));
    CHECK(largest_difference(q->mean(), mean) < 1e-12);
  }
}

TEST_CASE("a full covariance changes by the rate of the optimizer, however narrow it is") {
  for (const double sd : {1.0, 1e-3}) {
    FullGaussian q(torch::zeros({40}, torch::kDouble), sd);
    {
      const torch::NoGradGuard no_gradients;
      q.scale().add_(0.02);  // Adam's first step: each number by the learning rate
    }
    const auto ratio = q.variance().sqrt() / sd;
    CHECK(ratio.min().item<double>() == doctest::Approx(std::exp(0.02)).epsilon(0.001));
    CHECK(ratio.max().item<double>() < std::exp(0.02) * 1.001);
  }
}

TEST_CASE("natural parameters whose digits do not determine the posterior are refused") {
  const auto with_correlation = [](double correlation, at::ScalarType type) {
    FullGaussian q(values({3, -2}).to(type), 1);
    const auto covariance = torch::tensor({1.0, correlation, correlation, 1.0}, torch::kDouble);
    const auto precision = covariance.reshape({2, 2}).inverse();
    const NaturalParameters natural{precision.mv(values({3, -2})).to(type), precision.to(type)};
    const bool taken = q.set_natural(natural);
    if (taken) CHECK(largest_difference(q.mean(), values({3, -2})) < 0.1);
    return taken;
  };
  for (const double correlation : {0.0, 0.9, 0.999, 0.9999})
    CHECK(with_correlation(correlation, torch::kFloat));
  CHECK_FALSE(with_correlation(0.999999, torch::kFloat));
  CHECK_FALSE(with_correlation(0.9999999, torch::kFloat));
  CHECK(with_correlation(0.9999999, torch::kDouble));
}

TEST_CASE("shard posteriors join by the mean of their natural parameters, exactly if q is full") {
  const LinearRegression model(61);
  const auto join = [&](auto make) {
    at::Tensor weighted_mean = torch::zeros({3}, torch::kDouble), precision;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const auto shard = split_data({model.x, model.y}, {rank, 3});
      const auto q = make();
      minimise(q->parameters(), [&] {
        return Elbo::averaged({rank, 3}, shard[0].size(0))
            .loss(LinearRegression::terms(*q, shard[0], shard[1]));
      });
      const NaturalParameters natural = q->natural();
      weighted_mean = weighted_mean + natural.weighted_mean / 3;
      precision = precision.defined() ? precision + natural.precision / 3 : natural.precision / 3;
    }
    auto joined = make();
    REQUIRE(joined->set_natural({weighted_mean, precision}));
    return joined;
  };
  const auto start = torch::zeros({3}, torch::kDouble);
  const auto full = join([&] { return std::make_unique<FullGaussian>(start); });
  CHECK(largest_difference(full->mean(), model.mean()) < exact);
  CHECK(largest_difference(full->covariance(), model.precision().inverse()) < exact);
  const auto mean_field = join([&] { return std::make_unique<MeanFieldGaussian>(start); });
  CHECK(largest_difference(mean_field->variance(), 1 / model.precision().diagonal()) < exact);
  CHECK(largest_difference(mean_field->mean(), model.mean()) > 1e-3);  // as the values depend
}

}  // namespace dpwa
