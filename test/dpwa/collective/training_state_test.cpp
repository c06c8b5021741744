#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "dpwa/collective/agreement.h"
#include "dpwa/collective/group_former.h"
#include "dpwa/collective/starter.h"
#include "dpwa/collective/state_transfer.h"
#include "dpwa/collective/step_record.h"

// Starter and StateTransfer in groups without a network.
namespace dpwa::collective {
namespace {

GroupOptions place(int rank, int size) {
  GroupOptions options;
  options.rank = rank;
  options.size = size;
  return options;
}

// A group whose other members say what this one says.
class Mirror final : public StepGroup {
 public:
  Mirror(int rank, int size) : StepGroup(place(rank, size)) {}

  const std::string& engine() const override { return name_; }
  const std::string& setting() const override { return name_; }
  void abort() noexcept override { broken_up = true; }
  void abandon(int) noexcept override { broken_up = true; }
  bool aborted() const override { return broken_up; }
  bool broken() const override { return broken_up; }
  std::optional<int> lost_rank() const override { return std::nullopt; }
  void leave(std::chrono::milliseconds) noexcept override {}
  void run(const std::string& what, const std::function<void()>& operation) const override {
    if (broken_up) throw CollectiveError(Failure::lost, what, name_, "a member is lost");
    operation();
  }
  void gather(std::span<const std::byte> own, std::span<std::byte> all) const override {
    for (std::size_t from = 0; from < all.size(); from += own.size())
      std::ranges::copy(own, all.subspan(from).begin());
  }
  void broadcast(std::span<std::byte>, int) const override {}

  bool broken_up = false;

 private:
  const std::string name_ = "mirror";
};

// A model of one weight, which is never exchanged.
class OneWeight final : public Replica {
 public:
  bool has_begun() const override { return false; }
  std::vector<Signature::Entry> tensors() const override { return {{"weight", "float32 [1, 1]"}}; }
  void check() const override {}
  bool is_on_host() const override { return true; }
  void broadcast_model(const StepGroup&, int) override {}
  void average_model(const StepGroup&, const std::vector<bool>&) override {}
  void enter(const StepGroup&, WaitWords) override {}
  void drop() override {}
  StepResult exchange() override { return {}; }
  StepResult repeat() override { return {}; }
  StepResult exchange_joined() override { return {}; }
  void set_stopping() override {}
  void set_note(std::uint32_t) override {}
};

struct Momentum final : OptimizerState {
  Signature words() const override { return {"step with SGD", {}, {}}; }
  std::string state_words() const override { return "checksum 0"; }
  std::string save() const override { return "moments"; }
  void load(const std::string&) override {}
};

struct Transfer {
  void enter(const Mirror& group, const std::vector<MemberState>& members) {
    transfer.enter(group, plan_sync(members));
    transfer.complete(group);
  }
  GroupState own() const { return transfer.own_state(/*newcomer=*/false).group_state; }

  OneWeight replica;
  Momentum optimizer;
  StateTransfer transfer{replica};
};

}  // namespace

using enum GroupState;

TEST_CASE("a node is a member once it has the state of a group, and trains apart with it") {
  Transfer node;
  node.transfer.set_clock(7);
  CHECK(node.own() == none);  // whatever its checkpoint has
  Mirror group(0, 1);
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
  Mirror group(0, 2);
  node.enter(group, {{3, none}, {7, member}});
  CHECK(node.transfer.clock() == 7);
  CHECK(node.own() == none);
  CHECK(node.transfer.is_to_compare());
  node.transfer.compare(group, nullptr);
  CHECK_FALSE(node.transfer.is_to_compare());
  CHECK(node.own() == member);
}

TEST_CASE("one whose group fails before it has the optimizer's state takes over all of it again") {
  Transfer node;
  Mirror group(0, 2);
  node.enter(group, {{3, none}, {7, member}});
  group.broken_up = true;
  CHECK_THROWS_AS(node.transfer.compare(group, &node.optimizer), CollectiveError);
  CHECK(node.transfer.is_broken());
  node.transfer.go_apart();
  CHECK(node.own() == none);
}

TEST_CASE("one that trains apart keeps the optimizer that it has") {
  Transfer node;
  Mirror group(0, 2);
  node.enter(group, {{3, none}, {7, member}});
  node.transfer.go_apart();
  CHECK(node.own() == apart);
}

TEST_CASE(
    "members compare settings first, then each tensor, and nodes that meet the model as one") {
  Transfer node;
  StepRecord steps;
  Config config;
  config.nodes.emplace_back();
  config.nodes.back().name = "a";
  config.self = "a";
  Starter starter(config, "dpwa", node.replica, node.transfer, steps, nullptr);
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

TEST_CASE("members that can never form a group know it after one attempt, all of them") {
  Connector connector;
  connector.form = [](const GroupOptions&, const auto&) -> std::unique_ptr<StepGroup> {
    throw CollectiveError(Failure::mismatch, "forming a group", "nccl",
                          "ranks 0 and 1 use the same GPU");
  };
  Attempted attempted = attempt(connector, place(0, 2), nullptr);
  CHECK(attempted.group == nullptr);
  CHECK(attempted.hopeless);
  CHECK(attempted.problem == "ranks 0 and 1 use the same GPU");
  connector.form = [](const GroupOptions&, const auto&) -> std::unique_ptr<StepGroup> {
    throw CollectiveError(Failure::timeout, "forming a group", "gloo", "rank 1 has not come");
  };
  attempted = attempt(connector, place(0, 2), nullptr);
  CHECK_FALSE(attempted.hopeless);
  CHECK(attempted.problem == "rank 1 has not come");
}

}  // namespace dpwa::collective
