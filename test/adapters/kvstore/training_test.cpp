#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>

#include "adapters/kvstore/kvstore.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/store_cluster.h"

namespace dpwa {
namespace {

constexpr std::int64_t devices = 4;
constexpr std::int64_t share = 8;  // samples of one device in a step
constexpr int steps = 200;

struct SmallNet : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return out(torch::tanh(hidden(x))); }
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(6, 24));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(24, 3));
};

// The global batch of one step.
struct Batch {
  explicit Batch(int step) {
    torch::manual_seed(1000 + step);
    data = torch::randn({devices * share, 6});
    target = (data.slice(1, 0, 3).sin() * 3).argmax(1);
  }
  torch::Tensor data;
  torch::Tensor target;
};

void backward(SmallNet& net, const torch::Tensor& data, const torch::Tensor& target) {
  net.zero_grad();
  torch::nn::functional::cross_entropy(net.forward(data), target).backward();
}

std::shared_ptr<SmallNet> new_net() {
  torch::manual_seed(5);
  return std::make_shared<SmallNet>();
}

using MakeOptimizer = std::unique_ptr<torch::optim::Optimizer> (*)(SmallNet& net);

std::unique_ptr<torch::optim::Optimizer> momentum(SmallNet& net) {
  return std::make_unique<torch::optim::SGD>(
      net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4));
}

std::unique_ptr<torch::optim::Optimizer> adam(SmallNet& net) {
  return std::make_unique<torch::optim::Adam>(net.parameters(), torch::optim::AdamOptions(0.003));
}

void change_rate(torch::optim::Optimizer& optimizer, int step) {
  if (step == 120)
    optimizer.param_groups()[0].options().set_lr(optimizer.param_groups()[0].options().get_lr() /
                                                 5);
}

torch::Tensor flat(const SmallNet& net) {
  std::vector<torch::Tensor> all;
  for (const auto& parameter : net.parameters()) all.push_back(parameter.detach().flatten());
  return torch::cat(all);
}

torch::Tensor train_alone(MakeOptimizer make) {
  const auto net = new_net();
  const auto optimizer = make(*net);
  for (int step = 0; step < steps; ++step) {
    change_rate(*optimizer, step);
    const Batch batch(step);
    backward(*net, batch.data, batch.target);
    optimizer->step();
  }
  return flat(*net);
}

// `devices` models, each on its share of every batch, with their gradients summed by the store.
torch::Tensor train_with_store(const std::string& type, MakeOptimizer make) {
  const bool update_in_store = type == "local_update_cpu";
  std::vector<std::shared_ptr<SmallNet>> nets;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  for (int device = 0; device < devices; ++device) {
    nets.push_back(new_net());
    optimizers.push_back(make(*nets.back()));
  }
  KVStore store(type);
  const auto names = nets[0]->named_parameters().keys();
  const KVStore::Keys keys(names.begin(), names.end());
  store.init(keys, nets[0]->parameters());

  for (int step = 0; step < steps; ++step) {
    const Batch batch(step);
    KVStore::TensorLists gradients(keys.size()), weights(keys.size());
    for (std::int64_t device = 0; device < devices; ++device) {
      SmallNet& net = *nets[static_cast<std::size_t>(device)];
      backward(net, batch.data.slice(0, device * share, (device + 1) * share),
               batch.target.slice(0, device * share, (device + 1) * share));
      const auto parameters = net.parameters();
      for (std::size_t i = 0; i < keys.size(); ++i) {
        gradients[i].push_back(parameters[i].grad());
        weights[i].push_back(parameters[i]);
      }
    }
    for (auto& optimizer : optimizers) change_rate(*optimizer, step);
    if (update_in_store) {
      auto options = kvstore::options_of(*optimizers[0]).front();
      options.rescale = 1.0 / devices;  // the mean
      store.set_optimizer(options);
      store.push(keys, gradients);
      store.pull(keys, weights);
      continue;
    }
    store.pushpull(keys, gradients, gradients);
    for (std::size_t device = 0; device < nets.size(); ++device) {
      for (const auto& of_key : gradients) of_key[device].div_(devices);
      optimizers[device]->step();
    }
  }
  for (const auto& net : nets) CHECK(torch::equal(flat(*net), flat(*nets[0])));
  return flat(*nets[0]);
}

TEST_CASE("kvstore: each local type equals one process with the same global batch") {
  for (const MakeOptimizer make : {momentum, adam}) {
    const torch::Tensor alone = train_alone(make);
    for (const std::string type :
         {"local_update_cpu", "local_allreduce_cpu", "local_allreduce_device"}) {
      const torch::Tensor with_store = train_with_store(type, make);
      const double distance = ((with_store - alone).norm() / alone.norm()).item<double>();
      CAPTURE(type);
      CAPTURE(make == adam);
      CHECK(distance <= 1e-5);
    }
  }
}

// Two workers with two devices each; the servers update the weights.
torch::Tensor train_with_servers(MakeOptimizer make, std::size_t servers) {
  constexpr std::size_t workers = 2;
  constexpr std::size_t devices_each = devices / workers;
  std::vector<Batch> batches;
  for (int step = 0; step < steps; ++step) batches.emplace_back(step);
  std::vector<std::shared_ptr<SmallNet>> nets;
  for (std::int64_t device = 0; device < devices; ++device) nets.push_back(new_net());

  const test::StoreCluster cluster(workers, KvstoreType::dist_sync, servers);
  cluster.run(workers, [&](std::size_t worker, KVStore& store) {
    const std::size_t first = worker * devices_each;
    const auto optimizer = make(*nets[first]);
    const auto names = nets[first]->named_parameters().keys();
    const KVStore::Keys keys(names.begin(), names.end());
    store.init(keys, nets[first]->parameters());
    for (int step = 0; step < steps; ++step) {
      const Batch& batch = batches[static_cast<std::size_t>(step)];
      KVStore::TensorLists gradients(keys.size()), weights(keys.size());
      for (std::size_t device = first; device < first + devices_each; ++device) {
        const auto from = static_cast<std::int64_t>(device) * share;
        backward(*nets[device], batch.data.slice(0, from, from + share),
                 batch.target.slice(0, from, from + share));
        const auto parameters = nets[device]->parameters();
        for (std::size_t i = 0; i < keys.size(); ++i) {
          gradients[i].push_back(parameters[i].grad());
          weights[i].push_back(parameters[i]);
        }
      }
      change_rate(*optimizer, step);
      auto options = kvstore::options_of(*optimizer).front();
      options.rescale = 1.0 / devices;
      store.set_optimizer(options);
      // Both ways to the same value.
      if (step % 2 == 0) {
        store.pushpull(keys, gradients, weights);
      } else {
        store.push(keys, gradients);
        store.pull(keys, weights);
      }
    }
    CHECK(store.dropped_pushes() == 0);
  });
  for (const auto& net : nets) CHECK(torch::equal(flat(*net), flat(*nets[0])));
  return flat(*nets[0]);
}

TEST_CASE("kvstore: dist_sync equals one process with the same global batch") {
  for (const MakeOptimizer make : {momentum, adam}) {
    const torch::Tensor alone = train_alone(make);
    const torch::Tensor with_servers = train_with_servers(make, make == adam ? 2 : 1);
    CAPTURE(make == adam);
    CHECK(((with_servers - alone).norm() / alone.norm()).item<double>() <= 1e-5);
  }
}

}  // namespace
}  // namespace dpwa
