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

#include "adapters/collective/starter.h"
#include "adapters/collective/state_transfer.h"
#include "adapters/collective/stepper.h"
#include "test/adapters/doctest_with_torch.h"

// Starter, Stepper and StateTransfer in groups without a network.
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

class MirrorEngine : public Engine {
 public:
  const std::string& name() const override { return name_; }
  bool has_members() const override { return true; }
  Connection form(const c10::intrusive_ptr<c10d::Store>&,
                  const GroupOptions& options) const override {
    mirror = c10::make_intrusive<Mirror>(options.rank, options.size);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(options.rank, options.size);
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                      c10::intrusive_ptr<c10d::Backend>(mirror));
    return {group, [] { return std::nullopt; }};
  }

  mutable c10::intrusive_ptr<Mirror> mirror;  // of the group that was formed last

 private:
  std::string name_ = "mirror";
};

struct Group {
  Group(int rank, int size) {
    GroupOptions options;
    options.rank = rank;
    options.size = size;
    members = ProcessGroup::form(engine, nullptr, options);
  }
  void break_up() { engine->mirror->broken = true; }

  std::shared_ptr<MirrorEngine> engine = std::make_shared<MirrorEngine>();
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

struct Transfer : Trained {
  void enter(Group& group, const std::vector<MemberState>& members) {
    transfer.enter(*group.members, plan_sync(members));
    transfer.complete(group.members->rank());
  }
  GroupState own() const { return transfer.own_state(/*newcomer=*/false).group_state; }

  FlatParameters flat{*layer};
  StateTransfer transfer{flat};
};

struct Steps : Trained {
  void enter(Group& group) {
    stepper.enter(*group.members, [](const std::string&) {}, [] {});
  }

  CollectiveConfig config;
  Stepper stepper{config, *layer};
};

}  // namespace

using enum GroupState;

TEST_CASE("a node is a member once it has the state of a group, and trains apart with it") {
  Transfer node;
  node.transfer.set_clock(7);
  CHECK(node.own() == none);  // whatever its checkpoint has
  Group group(0, 1);
  node.enter(group, {{7, none}});
  CHECK(node.own() == member);
  CHECK(node.transfer.own_state(/*newcomer=*/true).group_state == none);
  CHECK(node.transfer.own_state(false).clock == 7);
  node.transfer.go_apart();
  CHECK(node.own() == apart);
}

TEST_CASE(
    "one that is behind is a member after its first step, when it has the optimizer's state") {
  Transfer node;
  node.transfer.set_clock(3);
  Group group(0, 2);
  node.enter(group, {{3, none}, {7, member}});
  CHECK(node.transfer.clock() == 7);
  CHECK(node.own() == none);
  CHECK(node.transfer.is_to_compare());
  node.transfer.compare(*group.members, nullptr);
  CHECK_FALSE(node.transfer.is_to_compare());
  CHECK(node.own() == member);
}

TEST_CASE("one whose group fails before it has the optimizer's state takes over all of it again") {
  Transfer node;
  Group group(0, 2);
  node.enter(group, {{3, none}, {7, member}});
  group.break_up();
  CHECK_THROWS_AS(node.transfer.compare(*group.members, &node.optimizer), CollectiveError);
  CHECK(node.transfer.is_broken());
  node.transfer.go_apart();
  CHECK(node.own() == none);
}

TEST_CASE("one that trains apart keeps the optimizer that it has") {
  Transfer node;
  Group group(0, 2);
  node.enter(group, {{3, none}, {7, member}});
  node.transfer.go_apart();
  CHECK(node.own() == apart);
}

TEST_CASE("at the start of a resumed run all but the source take over the optimizer's state") {
  const SyncPlan resumed = plan_sync({{7, none}, {7, none}});
  CHECK(resumed.hands_over_optimizer());
  CHECK_FALSE(resumed.takes_optimizer(0));
  CHECK(resumed.takes_optimizer(1));
  CHECK_FALSE(plan_sync({{0, none}, {0, none}}).hands_over_optimizer());
}

TEST_CASE("buckets of gradients lie where the members of the group read them without a copy") {
  Steps node;
  Group group(0, 2);
  node.enter(group);
  for (int step = 1; step <= 3; ++step) {  // buckets are made anew after the first one
    node.backward(step);
    REQUIRE(node.stepper.exchange().tally);
    CHECK(node.gradient() == step);
    CHECK(group.engine->mirror->reduced_where_lent == step);
    node.stepper.end_step(step);
  }
  CHECK(group.engine->mirror->lent.size() == 2);
}

TEST_CASE("the gradients of a step are the mean of all, also in the next group where one fails") {
  Steps node;
  Group first(1, 3);
  node.enter(first);
  CHECK(node.stepper.is_open());
  node.backward(6);
  auto result = node.stepper.exchange();
  REQUIRE(result.tally);
  CHECK(node.gradient() == 6);
  CHECK_FALSE(node.stepper.take(*result.tally));
  CHECK_FALSE(node.stepper.is_open());
  const StepReport report = node.stepper.end_step(8);
  CHECK(report.clock == 8);
  CHECK(report.participants == 3);
  CHECK(report.outcome == Outcome::averaged);
  CHECK(report.bytes == 4);
  CHECK(node.stepper.is_open());

  first.break_up();
  node.backward(5);
  CHECK(node.stepper.exchange().error);
  CHECK(node.gradient() == 5);
  node.stepper.drop();
  Group next(0, 2);
  node.enter(next);
  result = node.stepper.repeat();
  REQUIRE(result.tally);
  CHECK(node.gradient() == 5);
  node.stepper.drop();
}

TEST_CASE("a step without a backward pass sends zeros") {
  Steps node;
  Group alone(0, 1);
  node.enter(alone);
  CHECK(node.stepper.exchange().tally);
  CHECK(node.stepper.end_step(1).outcome == Outcome::skipped);
  CHECK(node.stepper.averaged_bytes() == 0);
  node.stepper.drop();
}

TEST_CASE("the rank that worked last counts at the end where some ran out of data before") {
  Steps node;
  StepTally tally;
  tally.notes = {0, 0};
  tally.first_at_work = 0;
  node.stepper.take(tally);
  CHECK_FALSE(node.stepper.last_at_work());
  tally.joined = 1;
  tally.first_at_work = 1;
  node.stepper.take(tally);
  tally.joined = 2;
  tally.first_at_work = -1;
  node.stepper.take(tally);
  CHECK(node.stepper.last_at_work() == 1);
}

TEST_CASE("nodes enter the next group once all have told that it has formed") {
  Steps node;
  StepTally tally;
  CHECK_FALSE(node.stepper.all_have_next_group());
  for (const auto& notes : {std::vector<std::uint32_t>{0, 0}, {5, 0}, {5, 7}}) {
    tally.notes = notes;
    node.stepper.take(tally);
    CHECK_FALSE(node.stepper.all_have_next_group());
  }
  tally.notes = {5, 5};
  node.stepper.take(tally);
  CHECK(node.stepper.all_have_next_group());
  CHECK_FALSE(node.stepper.all_have_next_group());  // once
}

TEST_CASE("that a node is told to stop is new once") {
  Steps node;
  StepTally tally;
  tally.notes = {0, 0};
  CHECK_FALSE(node.stepper.take(tally));
  tally.first_stopping = 1;
  CHECK(node.stepper.take(tally));
  CHECK_FALSE(node.stepper.take(tally));
  CHECK(node.stepper.all_stop());
}

TEST_CASE(
    "members compare settings first, then each tensor, and nodes that meet the model as one") {
  Transfer node;
  Stepper stepper({}, *node.layer);
  Config config;
  config.nodes.emplace_back();
  config.nodes.back().name = "a";
  config.self = "a";
  Starter starter(config, "dpwa", *node.layer, node.transfer, stepper, nullptr);
  starter.require_same("--seed", "1");
  const Signature question = starter.question();
  REQUIRE(question.entries.size() >= 3);
  CHECK(question.entries.front().name == "nodes of the cluster file");
  CHECK(question.entries.front().setting);
  const auto& seed = question.entries[question.entries.size() - 2];
  CHECK((seed.name == "--seed" && seed.form == "1" && seed.setting));
  CHECK(question.entries.back().name == "weight");
  CHECK_FALSE(question.entries.back().setting);
  const Settings terms = starter.terms();
  CHECK(terms.size() == question.entries.size());
  CHECK(terms.back().first == "model");
  CHECK(starter.place().size == 1);
}

}  // namespace dpwa::collective
