#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "adapters/collective/torch_replica.h"
#include "test/adapters/doctest_with_torch.h"

// The exchange of gradients in groups without a network.
namespace dpwa::collective {
namespace {

class DoneWork : public c10d::Work {
 public:
  DoneWork() { finish(); }
};

// A group whose other members say what this one says, and have no samples.
class Mirror : public c10d::Backend {
 public:
  using Backend::Backend;
  using Done = c10::intrusive_ptr<c10d::Work>;

  const std::string getBackendName() const override { return "mirror"; }
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override {
    return lent.emplace_back(torch::empty({size}, options));
  }
  Done allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    const auto holds = [&](const at::Tensor& each) {
      return each.data_ptr() == tensors[0].data_ptr();
    };
    if (std::ranges::any_of(lent, holds)) ++reduced_where_lent;
    return done();
  }
  Done broadcast(std::vector<at::Tensor>&, const c10d::BroadcastOptions&) override {
    return done();
  }
  Done _allgather_base(at::Tensor& all, at::Tensor& own, const c10d::AllgatherOptions&) override {
    for (at::Tensor& each : all.chunk(getSize())) each.copy_(own);
    return done();
  }

  bool broken = false;
  std::vector<at::Tensor> lent;
  int reduced_where_lent = 0;  // tensors in that memory

 private:
  Done done() const {
    if (broken) throw std::runtime_error("a member is lost");
    return c10::make_intrusive<DoneWork>();
  }
};

// `mirror`: of the group that was formed last.
Engine mirror_engine(c10::intrusive_ptr<Mirror>& mirror) {
  return {.name = "mirror",
          .has_members = true,
          .form = [&mirror](const c10::intrusive_ptr<c10d::Store>&, const GroupOptions& options) {
            mirror = c10::make_intrusive<Mirror>(options.rank, options.size);
            auto group = c10::make_intrusive<c10d::ProcessGroup>(options.rank, options.size);
            group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                              c10::intrusive_ptr<c10d::Backend>(mirror));
            return Connection{group, [] { return std::nullopt; }};
          }};
}

struct Group {
  Group(int rank, int size) {
    GroupOptions options;
    options.rank = rank;
    options.size = size;
    members = ProcessGroup::form(mirror_engine(mirror), nullptr, options);
  }
  void break_up() { mirror->broken = true; }

  c10::intrusive_ptr<Mirror> mirror;
  std::unique_ptr<ProcessGroup> members;
};

// A layer with one weight, and its state.
struct Trained {
  Trained() { torch::nn::init::constant_(layer->weight, 2); }

  // The gradient of the weight is `gradient`.
  void backward(double gradient) {
    layer->zero_grad();
    layer->forward(torch::full({1, 1}, gradient)).sum().backward();
  }
  double gradient() { return layer->weight.grad().item<double>(); }

  torch::nn::Linear layer{torch::nn::LinearOptions(1, 1).bias(false)};
  torch::optim::SGD optimizer{layer->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
};

struct Steps : Trained {
  CollectiveConfig config;
  FlatParameters flat{*layer};
  TorchReplica replica{config, *layer, flat};
};

}  // namespace

TEST_CASE("the gradients of a step are the mean of all, also in the next group where one fails") {
  Steps node;
  Group first(1, 3);
  node.replica.enter(*first.members, {});
  node.backward(6);
  StepResult result = node.replica.exchange();
  REQUIRE(result.tally);
  CHECK(node.gradient() == 6);
  CHECK(result.tally->notes.size() == 3);
  CHECK(result.bytes == 4);

  first.break_up();
  node.backward(5);
  CHECK(node.replica.exchange().error);
  CHECK(node.gradient() == 5);
  node.replica.drop();
  Group next(0, 2);
  node.replica.enter(*next.members, {});
  result = node.replica.repeat();
  REQUIRE(result.tally);
  CHECK(node.gradient() == 5);
  node.replica.drop();
}

TEST_CASE("buckets of gradients lie where the members of the group read them without a copy") {
  Steps node;
  Group group(0, 2);
  node.replica.enter(*group.members, {});
  for (int step = 1; step <= 3; ++step) {  // buckets are made anew after the first one
    node.backward(step);
    REQUIRE(node.replica.exchange().tally);
    CHECK(node.gradient() == step);
    CHECK(group.mirror->reduced_where_lent == step);
  }
  CHECK(group.mirror->lent.size() == 2);
  node.replica.drop();
}

TEST_CASE("a step without a backward pass sends zeros") {
  Steps node;
  Group alone(0, 1);
  node.replica.enter(*alone.members, {});
  const StepResult result = node.replica.exchange();
  CHECK(result.tally);
  CHECK(result.bytes == 0);
  node.replica.drop();
}

TEST_CASE("a model is known to the others by its tensors") {
  Steps node;
  const auto tensors = node.replica.tensors();
  REQUIRE(tensors.size() == 1);
  CHECK(tensors.front().name == "weight");
  CHECK(tensors.front().form == "float32 [1, 1]");
  CHECK_FALSE(tensors.front().setting);
}

}  // namespace dpwa::collective
