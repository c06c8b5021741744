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
#include "adapters/collective/state_sync.h"
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

using enum GroupState;
using Flags = std::vector<bool>;

TEST_CASE("at the start of a run all take over from the one that has come furthest") {
  const SyncPlan plan = plan_sync({{3, none}, {7, none}, {7, none}});
  CHECK(plan.source == 1);
  CHECK(plan.clock == 7);
  CHECK(plan.behind == Flags{true, false, false});
  CHECK_FALSE(plan.averages());
  CHECK(plan.newcomers);
  CHECK(plan.fresh);
}

TEST_CASE("members of a group that finished a step hand its result to those that had not") {
  const SyncPlan plan = plan_sync({{41, member}, {42, member}, {42, member}});
  CHECK(plan.source == 1);
  CHECK(plan.behind == Flags{true, false, false});
  CHECK_FALSE(plan.newcomers);
  CHECK_FALSE(plan.fresh);
  CHECK_FALSE(plan_sync({{42, member}, {42, member}}).any_behind());
}

TEST_CASE("a newcomer takes over from the group, however far its checkpoint was") {
  const SyncPlan plan = plan_sync({{900, none}, {42, member}, {50, apart}});
  CHECK(plan.source == 1);
  CHECK(plan.clock == 42);
  CHECK(plan.behind == Flags{true, false, true});
  CHECK(plan.newcomers);
}

TEST_CASE("those that trained apart take the mean of their weights, and newcomers take it too") {
  const SyncPlan plan = plan_sync({{50, apart}, {900, none}, {52, apart}});
  CHECK(plan.source == 2);
  CHECK(plan.averaged == Flags{true, false, true});
  CHECK(plan.behind == Flags{true, true, false});
}

TEST_CASE("what a rank says of itself travels as one number") {
  for (const GroupState group_state : {member, apart, none}) {
    const MemberState state = unpacked(packed({123456789, group_state}));
    CHECK(state.clock == 123456789);
    CHECK(state.group_state == group_state);
  }
}

// An engine whose members find, at their store, that they can form no group.
class RefusingEngine final : public collective::Engine {
 public:
  const std::string& name() const override { return name_; }
  collective::Connection form(const c10::intrusive_ptr<c10d::Store>&,
                              const collective::GroupOptions&) const override {
    throw CollectiveError(collective::Failure::mismatch, "forming a group", name_,
                          "ranks 0 and 1 use the same GPU");
  }

 private:
  std::string name_ = "nccl";
};

TEST_CASE("members that can never form a group know it after one attempt, all of them") {
  const auto engine = std::make_shared<RefusingEngine>();
  const auto entries = std::make_shared<group::SharedEntries>([](const members::Entry&) {});
  std::vector<collective::Attempt> attempts(2);
  test::at_once(attempts.size(), [&](std::size_t index) {
    collective::GroupOptions options;
    options.rank = static_cast<int>(index);
    options.size = 2;
    attempts[index].run(engine, options, entries);
  });
  for (collective::Attempt& attempt : attempts) {
    const MutexLock lock(attempt.mutex);
    CHECK(attempt.hopeless);
    CHECK(attempt.problem == "ranks 0 and 1 use the same GPU");
  }
}

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
