// A node that fits posteriors that are known in closed form: svi_node FILE NAME ROWS OUTPUT.
// Writes them as one JSON object: the mean and variance of a normal mean, and mean and covariance
// of a linear regression with ROWS rows. Under gossip the nodes exchange natural parameters.
#include <ATen/Parallel.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/inference/elbo.h"
#include "adapters/inference/gaussian_posterior.h"
#include "adapters/inference/natural_exchange.h"
#include "adapters/inference/split_data.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "test/adapters/inference/conjugate_models.h"

namespace {

using dpwa::test::LinearRegression;
using dpwa::test::NormalMean;

constexpr int steps = 1200;  // to the precision of the arithmetic

struct Model : torch::nn::Module {
  std::shared_ptr<dpwa::MeanFieldGaussian> normal = register_module(
      "normal", std::make_shared<dpwa::MeanFieldGaussian>(dpwa::test::values({0.3}), 0.5));
  std::shared_ptr<dpwa::FullGaussian> weights = register_module(
      "weights", std::make_shared<dpwa::FullGaussian>(torch::zeros({3}, torch::kDouble), 0.3));
};

// Both models in one objective: each term has the scale of its own rows.
at::Tensor loss_of(const Model& model, const dpwa::Place& place, const std::vector<at::Tensor>& one,
                   const std::vector<at::Tensor>& other) {
  using dpwa::Elbo;
  return Elbo::averaged(place, one[0].size(0)).loss(NormalMean::terms(*model.normal, one[0])) +
         Elbo::averaged(place, other[0].size(0))
             .loss(LinearRegression::terms(*model.weights, other[0], other[1]));
}

std::vector<double> numbers(const at::Tensor& tensor) {
  const auto flat = tensor.detach().contiguous().flatten();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

void run(const std::string& file, const std::string& name, std::int64_t rows, std::ofstream& out) {
  const dpwa::Config config = dpwa::load_config(file, name);
  dpwa::open_log(config).use();
  const NormalMean normal;
  const LinearRegression regression(rows);
  Model model;
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  auto adapter = dpwa::make_adapter(config, model);
  adapter->require_same("data", dpwa::words_of_shapes({regression.x, regression.y}));
  dpwa::NaturalExchange exchange(config, *adapter, model);
  exchange.start();
  const dpwa::Place place = adapter->place();
  const auto one = dpwa::split_data(std::vector{normal.y}, place);
  const auto other = dpwa::split_data({regression.x, regression.y}, place);
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    const auto loss = loss_of(model, place, one, other);
    loss.backward();
    exchange.step(optimizer, loss);
  }
  const auto report = exchange.finish();
  out << nlohmann::json{{"normal", numbers(model.normal->mean())},
                        {"normal_variance", numbers(model.normal->variance())},
                        {"weights", numbers(model.weights->mean())},
                        {"weights_covariance", numbers(model.weights->covariance())},
                        {"exact_weights", numbers(regression.mean())},
                        {"exact_covariance", numbers(regression.precision().inverse())},
                        {"participants", report.participants}}
             .dump()
      << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::cerr << "svi_node FILE NAME ROWS OUTPUT\n";
    return 2;
  }
  at::set_num_threads(1);
  std::ofstream out(arguments[4]);
  try {
    run(arguments[1], arguments[2], std::stol(arguments[3]), out);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
