#include "adapters/inference/natural_exchange.h"

#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/inference/elbo.h"
#include "adapters/inference/split_data.h"
#include "test/adapters/contract.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/inference/conjugate_models.h"

namespace dpwa {
namespace {

using test::BackEnd;
using test::NormalMean;
using test::Participant;
using test::run_nodes;
using test::values;

struct Model : torch::nn::Module {
  explicit Model(double sd = 0.5) : q(std::make_shared<MeanFieldGaussian>(values({0.3}), sd)) {
    register_module("q", q);
  }
  std::shared_ptr<MeanFieldGaussian> q;
};

// One step on the whole shard of this node.
void step(const Model& model, const Place& place,
          const std::function<void(torch::optim::Optimizer&, const at::Tensor&)>& take) {
  const auto y = split_data(NormalMean().y, place);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.02));
  const auto loss = Elbo::averaged(place, y.size(0)).loss(NormalMean::terms(*model.q, y));
  optimizer.zero_grad();
  loss.backward();
  take(optimizer, loss);
}

struct Found {
  double mean, variance;
};

// Trains on every node of a cluster; what each has at the end.
std::vector<Found> train(const BackEnd& back_end, int steps, bool natural) {
  std::vector<Found> found(back_end.nodes);
  run_nodes(back_end, [&](Participant& node) {
    Model model;
    const auto adapter = make_adapter(node.config, model);
    NaturalExchange exchange(node.config, *adapter, model);
    if (natural) {
      exchange.start();
    } else {
      adapter->start();
    }
    node.wait_for_all();
    for (int i = 0; i < steps; ++i) {
      step(model, adapter->place(), [&](auto& optimizer, const auto& loss) {
        natural ? exchange.step(optimizer, loss) : adapter->step(optimizer, loss);
      });
    }
    natural ? exchange.finish() : adapter->finish();
    CHECK(exchange.refused() == 0);
    found[node.index] = {model.q->mean().item<double>(), model.q->variance().item<double>()};
  });
  return found;
}

void apart(Config& config) {
  config.gossip.pull_probability = 0;
}

// How far four gossip nodes end from the exact posterior of a regression with a full covariance.
struct Distance {
  double mean;             // the largest, in standard deviations
  double least, greatest;  // of the variances, as fractions of the exact ones
};

Distance distance_after(bool pulls, bool natural) {
  const test::LinearRegression regression(60);
  const BackEnd back_end{"gossip", 4, [pulls](Config& config) {
                           config.gossip.pull_probability = pulls ? 1 : 0;
                           config.gossip.firewall.distance = DistancePolicy::off;
                         }};
  Distance found{};
  run_nodes(back_end, [&](Participant& node) {
    FullGaussian q(torch::zeros({3}, torch::kDouble), 0.3);
    const auto adapter = make_adapter(node.config, q);
    NaturalExchange exchange(node.config, *adapter, q);
    natural ? exchange.start() : adapter->start();
    const auto shard = split_data({regression.x, regression.y}, adapter->place());
    const Elbo elbo = Elbo::averaged(adapter->place(), shard[0].size(0));
    torch::optim::SGD optimizer(q.parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    node.wait_for_all();
    for (int i = 0; i < 2000; ++i) {
      optimizer.zero_grad();
      const auto loss = elbo.loss(test::LinearRegression::terms(q, shard[0], shard[1]));
      loss.backward();
      natural ? exchange.step(optimizer, loss) : adapter->step(optimizer, loss);
    }
    natural ? exchange.finish() : adapter->finish();
    if (node.index != 0) return;
    const torch::NoGradGuard no_gradients;
    const auto exact = regression.precision().inverse().diagonal();
    const auto ratio = q.variance() / exact;
    const auto away = ((q.mean() - regression.mean()) / exact.sqrt()).abs();
    found = {away.max().item<double>(), ratio.min().item<double>(), ratio.max().item<double>()};
  });
  return found;
}

// The back end as a test sees it: it notes what it is given, and changes it as it is told.
class FakeAdapter : public Adapter {
 public:
  FakeAdapter(Model& model, std::function<void(Model&)> change)
      : model_(model), change_(std::move(change)) {}

  void start() override { note(); }
  Place place() const override { return {}; }
  StepReport step(torch::optim::Optimizer&, const torch::Tensor&) override {
    throw std::logic_error("the optimizer's step needs the usual form");
  }
  StepReport skip_step(torch::optim::Optimizer&, const torch::Tensor&) override { return {}; }
  void update_send(const torch::Tensor&) override { note(); }
  StepReport update_wait(const torch::Tensor&) override {
    const torch::NoGradGuard no_gradients;
    note();
    change_(model_);
    return {};
  }
  void reload(const Config&) override {}
  FinishReport finish() override {
    note();
    return {};
  }
  void leave() override {}
  ResumeState resume_state() const override { return {}; }
  void restore(const ResumeState&) override {}

  std::vector<Found> seen;  // the two parameters, whatever they mean

 private:
  void note() {
    seen.push_back({model_.q->mean().item<double>(), model_.q->scale().item<double>()});
  }

  Model& model_;
  std::function<void(Model&)> change_;
};

}  // namespace

TEST_CASE("the mean of natural parameters joins shard posteriors exactly, a plain mean does not") {
  for (std::size_t nodes = 2; nodes <= 3; ++nodes) {
    const BackEnd back_end{"gossip apart", nodes, apart};
    for (const Found& found : train(back_end, 500, true)) {
      CHECK(found.mean == doctest::Approx(16.0 / 9).epsilon(1e-9));
      CHECK(found.variance == doctest::Approx(1.0 / 9).epsilon(1e-9));
    }
  }
  // Three nodes have shards of 7, 5 and 4 in sum, and precisions of 10, 10 and 7.
  for (const Found& found : train({"gossip apart", 3, apart}, 500, false)) {
    CHECK(found.mean == doctest::Approx((21.0 / 10 + 15.0 / 10 + 12.0 / 7) / 3).epsilon(1e-9));
    CHECK(found.variance == doctest::Approx(std::pow(10 * 10 * 7, -1.0 / 3)).epsilon(1e-9));
  }
}

TEST_CASE("no pulls: the natural average of full covariances is exact, that of (m, log s) is not") {
  const Distance natural = distance_after(false, true);
  CHECK(natural.mean < 1e-6);
  CHECK(std::abs(natural.least - 1) < 1e-6);
  CHECK(std::abs(natural.greatest - 1) < 1e-6);
  const Distance plain = distance_after(false, false);
  CHECK(plain.mean == doctest::Approx(0.596).epsilon(0.01));
  CHECK(plain.greatest == doctest::Approx(1.236).epsilon(0.01));
}

// The figures of docs/INFERENCE.md, which depend on timing: --no-skip runs it.
TEST_CASE("measurement: the posterior of nodes that pull while they train" * doctest::skip()) {
  for (const bool natural : {true, false}) {
    const Distance found = distance_after(true, natural);
    const std::string form = natural ? "natural parameters" : "(m, log s)";
    MESSAGE(form << ": mean off by " << found.mean << " sd, variances " << found.least << " to "
                 << found.greatest << " of the exact ones");
  }
}

TEST_CASE("under every back end all nodes end with one posterior, that of all data") {
  for (BackEnd back_end : test::back_ends()) {
    INFO(back_end.name);
    // The nodes of so small a model become so equal that the firewall takes the rest for outliers.
    const auto tune = back_end.tune;
    back_end.tune = [tune](Config& config) {
      tune(config);
      config.gossip.firewall.distance = DistancePolicy::off;
    };
    const bool blends = back_end.nodes > 1 && back_end.name.starts_with("gossip");
    const double bound = blends ? 0.2 : 1e-6;
    const auto found = train(back_end, 300, true);
    for (const Found& node : found) {
      CHECK(std::abs(node.mean - 16.0 / 9) < bound);
      CHECK(std::abs(node.variance - 1.0 / 9) < bound);
      CHECK(node.mean == doctest::Approx(found[0].mean).epsilon(1e-12));
    }
  }
}

TEST_CASE("the adapter sees the natural form, the optimizer the usual one, bit for bit") {
  Model model, plain;
  FakeAdapter adapter(model, [](Model&) {});
  NaturalExchange exchange(Config{}, adapter, model);
  exchange.start();
  for (int i = 0; i < 5; ++i) {
    const double mean = model.q->mean().item<double>(),
                 variance = model.q->variance().item<double>();
    CHECK(adapter.seen.back().mean == doctest::Approx(mean / variance));
    CHECK(adapter.seen.back().variance == doctest::Approx(1 / variance));
    step(model, {}, [&](auto& optimizer, const auto& loss) { exchange.step(optimizer, loss); });
    step(plain, {}, [](auto& optimizer, const auto&) { optimizer.step(); });
    CHECK(model.q->mean().equal(plain.q->mean()));
    CHECK(model.q->scale().equal(plain.q->scale()));
  }
  exchange.finish();
  CHECK(model.q->scale().equal(plain.q->scale()));
}

TEST_CASE("a posterior that is registered twice is turned once") {
  struct Twice : Model {
    Twice() { register_module("again", q); }
  };
  Twice model;
  const auto mean = model.q->mean().clone(), scale = model.q->scale().clone();
  FakeAdapter adapter(model, [](Model&) {});
  NaturalExchange exchange(Config{}, adapter, model);
  exchange.start();
  exchange.finish();
  CHECK(model.q->mean().equal(mean));
  CHECK(model.q->scale().equal(scale));
  CHECK(exchange.refused() == 0);
}

TEST_CASE("a blend takes effect in natural form, and is refused when it leaves no Gaussian") {
  Model model;
  double added = 2;
  FakeAdapter adapter(model, [&](Model& at) { at.q->scale().add_(added); });
  NaturalExchange exchange(Config{}, adapter, model);
  const auto no_step = [&] {
    torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0));
    exchange.step(optimizer, {});
  };
  no_step();  // precision 4 + 2, weighted mean 1.2
  CHECK(model.q->variance().item<double>() == doctest::Approx(1.0 / 6));
  CHECK(model.q->mean().item<double>() == doctest::Approx(1.2 / 6));
  added = -7;
  no_step();
  CHECK(exchange.refused() == 1);
  CHECK(model.q->variance().item<double>() == doctest::Approx(1.0 / 6));
}

TEST_CASE("without a network a node has all rows, whatever the file lists") {
  Config config;
  config.backend = Backend::null;
  config.self = "w2";
  for (const char* const name : {"w1", "w2", "w3", "w4"}) config.nodes.emplace_back().name = name;
  Model model;
  const auto adapter = make_adapter(config, model);
  adapter->start();
  CHECK(adapter->place().rank == 0);
  CHECK(adapter->place().size == 1);
  CHECK(split_data(NormalMean().y, adapter->place()).size(0) == 8);
}

TEST_CASE("a mark keeps what the adapter was restored to, and belongs before the start") {
  run_nodes({"gossip", 1, [](Config&) {}}, [](Participant& node) {
    Model model;
    const auto adapter = make_adapter(node.config, model);
    adapter->restore({7, {}});
    adapter->mark_model("data", "8 rows");
    CHECK(adapter->resume_state().clock == 7);
    CHECK_THROWS_AS(adapter->mark_model("data", "9 rows"), std::invalid_argument);
    adapter->start();
    CHECK(adapter->resume_state().clock == 7);
    CHECK_THROWS_AS(adapter->mark_model("form", "usual"), std::logic_error);
    adapter->finish();
  });
}

TEST_CASE("a model without a posterior has nothing to exchange in natural form") {
  torch::nn::Module nothing;
  Model model;
  FakeAdapter adapter(model, [](Model&) {});
  CHECK_THROWS_WITH_AS(NaturalExchange(Config{}, adapter, nothing),
                       "the model has no Gaussian posterior, so it has no natural parameters to "
                       "exchange",
                       std::invalid_argument);
  Config other;
  other.backend = Backend::null;
  CHECK_NOTHROW(NaturalExchange(other, adapter, nothing));
}

}  // namespace dpwa
