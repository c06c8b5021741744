#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <barrier>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/parallel/seed_streams.h"
#include "dpwa/parallel/shared_cursor.h"
#include "dpwa/parallel/shuffle.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/support/at_once.h"
#include "test/support/vector_cluster.h"

// Nodes that take their samples by one position, against one process that takes them all.
namespace dpwa {
namespace {

using torch::Tensor;
using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<Tensor>)>;

constexpr std::int64_t data_size = 500;
constexpr std::uint64_t global_batch = 24;
constexpr std::uint64_t end = 199 * global_batch + 7;  // 200 steps, the last one of 7 samples

struct Net : torch::nn::Module {
  explicit Net(std::uint64_t seed) {
    torch::manual_seed(static_cast<std::int64_t>(seed));
    first = register_module("first", torch::nn::Linear(6, 16));
    second = register_module("second", torch::nn::Linear(16, 3));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

struct Data {
  Tensor x, y;
};

Data make_data() {
  torch::manual_seed(77);
  return {torch::randn({data_size, 6}), torch::randint(3, {data_size})};
}

// Sample number `position` of the common order.
std::int64_t sample_at(std::uint64_t position) {
  static thread_local std::vector<std::int64_t> order(data_size);
  static thread_local std::uint64_t epoch_of_order = ~0ULL;
  const std::uint64_t epoch = position / data_size;
  if (epoch != epoch_of_order) {
    std::iota(order.begin(), order.end(), 0);
    Random random(SeedStreams(3).common(SeedRole::shared_order, epoch));
    shuffle(order, random);
    epoch_of_order = epoch;
  }
  return order[position % data_size];
}

Tensor loss_of(Net& net, const Data& data, const ItemRange& part) {
  std::vector<std::int64_t> samples;
  for (std::uint64_t i = part.from; i < part.end(); ++i) samples.push_back(sample_at(i));
  const Tensor rows = torch::tensor(samples);
  const Tensor scores = net.second(torch::tanh(net.first(data.x.index_select(0, rows))));
  return torch::cross_entropy_loss(scores, data.y.index_select(0, rows));
}

Tensor flat(const Net& net) {
  std::vector<Tensor> parts;
  for (const auto& tensor : net.parameters()) parts.push_back(tensor.detach().reshape({-1}));
  return torch::cat(parts).clone();
}

const std::vector<std::pair<std::string, MakeOptimizer>>& optimizers() {
  static const std::vector<std::pair<std::string, MakeOptimizer>> all = {
      {"sgd",
       [](std::vector<Tensor> p) -> std::unique_ptr<torch::optim::Optimizer> {
         return std::make_unique<torch::optim::SGD>(p, 0.1);
       }},
      {"momentum",
       [](std::vector<Tensor> p) -> std::unique_ptr<torch::optim::Optimizer> {
         return std::make_unique<torch::optim::SGD>(p, torch::optim::SGDOptions(0.03).momentum(.9));
       }},
      {"adam", [](std::vector<Tensor> p) -> std::unique_ptr<torch::optim::Optimizer> {
         return std::make_unique<torch::optim::Adam>(p, torch::optim::AdamOptions(0.002));
       }}};
  return all;
}

Tensor one_process(const Data& data, const MakeOptimizer& make_optimizer) {
  Net net(5);
  const auto optimizer = make_optimizer(net.parameters());
  for (SharedCursor cursor(global_batch, end); !cursor.ended(); cursor.advance(1)) {
    optimizer->zero_grad();
    loss_of(net, data, cursor.part(0, 1)).backward();
    optimizer->step();
  }
  return flat(net);
}

}  // namespace

TEST_CASE("nodes that share one position end where one process with the global batch does") {
  const Data data = make_data();
  for (const auto& [name, make_optimizer] : optimizers()) {
    const Tensor expected = one_process(data, make_optimizer);
    const std::vector<std::size_t> sizes =
        name == "adam" ? std::vector<std::size_t>{1, 2, 3, 4} : std::vector<std::size_t>{3};
    for (const std::size_t nodes : sizes) {
      INFO(nodes << " nodes, " << name);
      const auto ports = net::free_ports(nodes);
      std::vector<std::shared_ptr<Net>> models;
      for (std::size_t i = 0; i < nodes; ++i) models.push_back(std::make_shared<Net>(5));
      std::vector<std::uint64_t> taken(nodes);
      test::at_once(nodes, [&](std::size_t i) {
        Config config = test::loopback_config(ports, i);
        config.backend = Backend::collective;
        Net& net = *models[i];
        const auto optimizer = make_optimizer(net.parameters());
        const auto adapter = make_adapter(config, net);
        Tensor position = torch::zeros({1}, torch::kLong);
        adapter->share(position);
        adapter->start();
        SharedCursor cursor(global_batch / nodes, end);
        while (!cursor.ended()) {
          const Place place = adapter->place();
          const ItemRange part = cursor.part(place.rank, place.size);
          cursor.advance(place.size);
          position.fill_(static_cast<std::int64_t>(cursor.position()));
          taken[i] += part.count;
          optimizer->zero_grad();
          adapter->set_batch_size(part.count);
          Tensor loss;
          if (part.count > 0) {
            loss = loss_of(net, data, part);
            loss.backward();
          }
          adapter->step(*optimizer, loss);
        }
        adapter->finish();
      });
      CHECK(std::accumulate(taken.begin(), taken.end(), std::uint64_t{0}) == end);
      for (const auto& model : models) CHECK(torch::equal(flat(*model), flat(*models.front())));
      const Tensor result = flat(*models.front());
      CHECK(((result - expected).norm() / expected.norm()).item<double>() <= 1e-5);
    }
  }
}

}  // namespace dpwa
