#include <memory>
#include <vector>

#include "adapters/parallel/device_replicas.h"
#include "test/adapters/collective/training_nodes.h"

// Two levels: devices of one process, then nodes.
namespace dpwa {

using namespace test;

namespace {

std::unique_ptr<torch::optim::Optimizer> optimizer_of(Net& net, bool adam) {
  if (adam)
    return std::make_unique<torch::optim::Adam>(net.parameters(), torch::optim::AdamOptions(0.01));
  return std::make_unique<torch::optim::SGD>(net.parameters(),
                                             torch::optim::SGDOptions(0.05).momentum(0.9));
}

}  // namespace

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
