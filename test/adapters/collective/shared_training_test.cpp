#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "adapters/parallel/device_replicas.h"
#include "dpwa/parallel/seed_streams.h"
#include "dpwa/parallel/shares.h"
#include "test/adapters/collective/training_nodes.h"

// Nodes that share their samples, by one position in the data or among the devices of each node,
// against one process that trains on all of them.
namespace dpwa {

using namespace test;

namespace {

constexpr std::int64_t data_size = 500;
constexpr std::uint64_t global_batch = 24;
constexpr std::uint64_t end = 199 * global_batch + 7;  // 200 steps, the last one of 7 samples

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
  return torch::cross_entropy_loss(net.forward(data.x.index_select(0, rows)),
                                   data.y.index_select(0, rows));
}

const std::vector<NamedOptimizer>& gentle_optimizers() {
  using namespace torch::optim;
  static const std::vector<NamedOptimizer> all = {
      named<SGD>("sgd", SGDOptions(0.1)),
      named<SGD>("momentum", SGDOptions(0.03).momentum(0.9)),
      named<Adam>("adam", AdamOptions(0.002)),
  };
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

std::unique_ptr<torch::optim::Optimizer> optimizer_of(Net& net, bool adam) {
  if (adam)
    return std::make_unique<torch::optim::Adam>(net.parameters(), torch::optim::AdamOptions(0.01));
  return std::make_unique<torch::optim::SGD>(net.parameters(),
                                             torch::optim::SGDOptions(0.05).momentum(0.9));
}

}  // namespace

TEST_CASE("nodes that share one position end where one process with the global batch does") {
  const Data data = data_of(data_size);
  for (const auto& [name, make_optimizer] : gentle_optimizers()) {
    const Tensor expected = one_process(data, make_optimizer);
    const std::vector<std::size_t> sizes =
        name == "adam" ? std::vector<std::size_t>{1, 2, 3, 4} : std::vector<std::size_t>{3};
    for (const std::size_t nodes : sizes) {
      INFO(nodes << " nodes, " << name);
      const auto models = models_of<Net>(static_cast<int>(nodes), 5);
      std::vector<std::uint64_t> taken(nodes);
      run(static_cast<int>(nodes), [&](int rank, const Config& config) {
        const auto i = static_cast<std::size_t>(rank);
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
      CHECK(relative_distance(result, expected) <= 1e-5);
    }
  }
}

TEST_CASE("nodes with two devices each end where one process with the global batch does") {
  constexpr int rows = 75;
  constexpr int steps = 60;
  const Data data = data_of(rows);
  for (const bool adam : {false, true}) {
    Net single(5);
    const auto single_optimizer = optimizer_of(single, adam);
    for (int step = 0; step < steps; ++step) {
      single_optimizer->zero_grad();
      loss_of(single, data, 0, rows).backward();
      single_optimizer->step();
    }
    // One node on the network alone, two of them; and one without a network.
    for (const auto backend : {Backend::collective, Backend::null}) {
      for (const std::size_t nodes : {1, 2}) {
        if (backend == Backend::null && nodes > 1) continue;
        INFO(nodes << " nodes, " << (adam ? "adam" : "momentum"));
        const auto ports = net::free_ports(nodes);
        std::vector<std::shared_ptr<Net>> models;
        std::vector<std::unique_ptr<DeviceReplicas<Net>>> replicas;
        for (std::size_t i = 0; i < nodes; ++i) {
          models.push_back(std::make_shared<Net>(5));
          replicas.push_back(std::make_unique<DeviceReplicas<Net>>(
              *models.back(), std::vector<c10::Device>{c10::kCPU, c10::kCPU},
              [] { return std::make_shared<Net>(99); }));
        }
        test::at_once(nodes, [&](std::size_t i) {
          Config config = test::loopback_config(ports, i);
          config.backend = backend;
          Net& net = *models[i];
          const auto optimizer = optimizer_of(net, adam);
          const auto adapter = make_adapter(config, net);
          adapter->start();
          const ItemRange own = shard(rows, nodes, i);
          const auto loss_between = [&](std::uint64_t from, std::uint64_t count) {
            return replicas[i]->loss(count, [&](Net& one, c10::Device, const ItemRange& part) {
              return loss_of(one, data, static_cast<std::int64_t>(from + part.from),
                             static_cast<std::int64_t>(part.count));
            });
          };
          for (int step = 0; step < steps; ++step) {
            optimizer->zero_grad();
            adapter->set_batch_size(own.count);
            Tensor loss;
            if (step % 2 == 0) {
              loss = loss_between(own.from, own.count);
            } else {  // in two passes, of which the last one is sent
              const std::uint64_t half = own.count / 2;
              const auto share = [&](std::uint64_t count) {
                return static_cast<double>(count) / static_cast<double>(own.count);
              };
              {
                const Accumulation local = adapter->accumulate();
                (loss_between(own.from, half) * share(half)).backward();
              }
              loss = loss_between(own.from + half, own.count - half) * share(own.count - half);
            }
            loss.backward();
            adapter->step(*optimizer, loss);
          }
          adapter->finish();
        });
        for (const auto& model : models) CHECK(torch::equal(flat(*model), flat(*models[0])));
        CHECK(relative_distance(flat(*models[0]), flat(single)) <= (nodes == 1 ? 1e-6 : 1e-5));
        CHECK_FALSE(models[0]->unused->weight.grad().defined());
      }
    }
  }
}

}  // namespace dpwa
