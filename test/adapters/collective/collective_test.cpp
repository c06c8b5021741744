#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/collective/collective.h"
#include "adapters/collective/distributed_optimizer.h"
#include "adapters/collective/gathering.h"
#include "dpwa/net/free_ports.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

// What a user of Horovod finds, among nodes of a cluster file.
namespace dpwa {
namespace {

using collective::CollectiveError;
using collective::Reduction;
using torch::Tensor;

void with_nodes(std::size_t nodes, const std::function<void(Collective&)>& body) {
  const auto ports = net::free_ports(nodes);
  test::at_once(nodes, [&](std::size_t index) {
    Config config = test::loopback_config(ports, index);
    config.backend = Backend::collective;
    Collective all(config);
    body(all);
    all.shutdown();
  });
}

struct UnequalNet : torch::nn::Module {
  explicit UnequalNet(std::uint64_t seed) {
    torch::manual_seed(static_cast<std::int64_t>(seed));
    hidden = register_module("hidden", torch::nn::Linear(4, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    scores = register_module("scores", torch::nn::Linear(8, 2));
  }
  Tensor forward(const Tensor& x) { return scores(norm(hidden(x))); }
  torch::nn::Linear hidden{nullptr}, scores{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

bool same(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.parameters();
  const auto right = b.parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!torch::equal(left[i], right[i])) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("ranks are the places in the file, and reduce, gather and exchange") {
  with_nodes(3, [](Collective& all) {
    CHECK(all.size() == 3);
    CHECK(all.local_size() == 3);
    CHECK(all.local_rank() == all.rank());
    const Tensor own = torch::full({2}, all.rank() + 1.0);
    CHECK(torch::equal(all.allreduce("x", own), torch::full({2}, 2.0)));
    CHECK(torch::equal(all.allreduce("x", own, {.reduction = Reduction::sum, .postscale = 0.5}),
                       torch::full({2}, 3.0)));
    CHECK(torch::equal(all.allreduce_async("x", own, {.reduction = Reduction::max}).wait()[0],
                       torch::full({2}, 3.0)));
    CHECK(all.allgather("y", torch::ones({all.rank() + 1, 2})).size(0) == 6);
    Tensor root = torch::full({2}, all.rank() * 1.0);
    all.broadcast("z", root, 2);
    CHECK(torch::equal(root, torch::full({2}, 2.0)));
    CHECK(all.reducescatter("s", torch::ones({3, 1}), {.reduction = Reduction::sum})
              .equal(torch::full({1, 1}, 3.0F)));
    const auto [rows, counts] = all.alltoall("a", torch::full({3, 1}, all.rank() * 1.0F));
    CHECK(rows.equal(torch::arange(3, torch::kFloat).reshape({3, 1})));
    CHECK(counts == std::vector<std::int64_t>{1, 1, 1});
    all.barrier();
  });
}

TEST_CASE("another shape on one rank is an error on all, and they go on") {
  with_nodes(2, [](Collective& all) {
    CHECK_THROWS_AS(all.allreduce("x", torch::ones({2 + all.rank()})), CollectiveError);
    CHECK(torch::equal(all.allreduce("x", torch::ones({2})), torch::ones({2})));
  });
}

TEST_CASE("a process set is a group of its own, and null on the others") {
  with_nodes(3, [](Collective& all) {
    const auto set = all.subset({2, 0});
    CHECK((set == nullptr) == (all.rank() == 1));
    if (set) {
      CHECK(set->size() == 2);
      CHECK(set->rank() == (all.rank() == 2 ? 0 : 1));
      CHECK(torch::equal(set->allreduce("x", torch::full({1}, all.rank() * 1.0)),
                         torch::full({1}, 1.0)));
      set->shutdown();
    }
    CHECK_THROWS_AS(all.subset({0, 3}), CollectiveError);
    CHECK_THROWS_AS(all.subset({0, 0}), CollectiveError);
    CHECK_THROWS_AS(all.subset({0, all.rank() == 0 ? 1 : 2}), CollectiveError);
    all.barrier();
  });
}

TEST_CASE("an optimizer around another one trains all ranks as one, joining where data ends") {
  std::vector<std::shared_ptr<UnequalNet>> models;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    models.push_back(std::make_shared<UnequalNet>(seed));
  torch::manual_seed(9);
  const Tensor x = torch::randn({48, 4});
  const Tensor y = torch::randint(2, {48});
  with_nodes(3, [&](Collective& all) {
    UnequalNet& model = *models[static_cast<std::size_t>(all.rank())];
    torch::optim::Adam adam(model.parameters(), torch::optim::AdamOptions(0.01 + all.rank()));
    all.broadcast_parameters(model, 1);
    all.broadcast_optimizer_state(adam, 0);
    CHECK(adam.param_groups()[0].options().get_lr() == doctest::Approx(0.01));
    DistributedOptimizer optimizer(all, model, adam);
    for (int step = 0; step < 5 + 2 * all.rank(); ++step) {
      optimizer.set_batch_size(16);
      optimizer.zero_grad();
      torch::cross_entropy_loss(model.forward(x.narrow(0, all.rank() * 16, 16)),
                                y.narrow(0, all.rank() * 16, 16))
          .backward();
      if (step == 2) optimizer.synchronize();  // and clip here
      optimizer.step();
    }
    CHECK(optimizer.join() == 2);
  });
  CHECK(same(*models[0], *models[1]));
  CHECK(same(*models[0], *models[2]));
}

}  // namespace dpwa

namespace dpwa::collective {

TEST_CASE("a model on a device is refused by name where the engine cannot send from there") {
  Config config;
  config.backend = Backend::collective;
  const at::Device gpu(at::kCUDA, 1);
  CHECK_NOTHROW(collective::require_device(config, at::kCPU));
  CHECK_NOTHROW(collective::require_device(config, gpu));
  CHECK_THROWS_WITH_AS(collective::require_device(config, at::Device(at::kXPU, 0)),
                       doctest::Contains("not offered for a model on xpu:0; accepted: gossip"),
                       ConfigError);
  config.collective.engine = CollectiveEngine::mpi;
  CHECK_NOTHROW(collective::require_device(config, at::kCPU));
  CHECK_THROWS_WITH_AS(
      collective::require_device(config, gpu),
      doctest::Contains("mpi is not offered for a model on cuda:1; accepted: dpwa, gloo, nccl"),
      ConfigError);
}

}  // namespace dpwa::collective
