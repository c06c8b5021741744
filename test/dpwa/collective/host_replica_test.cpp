#include "dpwa/collective/host_replica.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/collective/bytes_group.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "test/support/eventually.h"
#include "test/support/meeting_members.h"

// Nodes as threads of one process, whose groups are real ones.
namespace dpwa::collective {
namespace {

std::unique_ptr<StepGroup> group_of(const test::MeetingMembers& members, std::size_t rank) {
  return BytesGroup::connector("test").form(members.options(rank), members.entries(rank));
}

// Two trained parameters "a" and "b" of two numbers each, and the statistics "mean" of one.
struct Model {
  Manifest manifest{{{"a", DType::float32, BlendRule::interpolate, {2}},
                     {"mean", DType::float32, BlendRule::interpolate, {1}},
                     {"b", DType::float32, BlendRule::interpolate, {2}}}};
  AlignedBuffer memory{manifest.total_bytes()};

  float& value(std::size_t tensor) {
    return *reinterpret_cast<float*>(memory.bytes().data() + manifest.offset_of(tensor));
  }
};

// A program: the gradients of its parameters; none where it has no number.
struct Program final : GradientSource {
  explicit Program(std::vector<std::optional<float>> own) : gradients(std::move(own)) {}

  void check() override {}
  void give(const std::vector<std::size_t>& parameters, double weight) override {
    for (const std::size_t i : parameters) write(i, weight);
  }
  void take(const std::vector<std::size_t>& parameters, double divisor) override {
    for (const std::size_t i : parameters)
      gradients[i] = static_cast<float>(numbers(i)[1] / divisor);
  }
  void clear() override { std::ranges::fill(gradients, std::nullopt); }

  void write(std::size_t parameter, double weight) {
    std::fill_n(numbers(parameter), 2, static_cast<float>(*gradients[parameter] * weight));
  }
  float* numbers(std::size_t parameter) {
    return reinterpret_cast<float*>(replica->place(parameter).get());
  }
  void backward() {
    for (std::size_t i = gradients.size(); i-- > 0;) {
      if (!gradients[i]) continue;
      const auto full = replica->come(i);
      for (const std::size_t each : full) write(each, replica->weight());
      replica->send(full);
    }
  }

  std::vector<std::optional<float>> gradients;
  HostReplica* replica = nullptr;
};

struct Node {
  explicit Node(std::vector<std::optional<float>> own) : program(std::move(own)) {
    program.replica = &replica;
  }
  static CollectiveConfig small_buckets() {
    CollectiveConfig config;
    config.bucket_bytes = 1;
    return config;
  }

  CollectiveConfig config = small_buckets();
  Model model;
  Program program;
  HostReplica replica{config, model.manifest, model.memory.bytes(), {true, false, true}, program};
};

}  // namespace

TEST_CASE("buckets are full in the order of backward, of one type each, the first a small one") {
  constexpr std::uint64_t mega = std::uint64_t{1} << 20;
  const auto tensor = [](DType type, std::uint64_t bytes) {
    return TensorSpec{"t", type, BlendRule::interpolate, {bytes / size_of(type)}};
  };
  const std::vector<TensorSpec> parameters{
      tensor(DType::float32, mega), tensor(DType::bfloat16, 8), tensor(DType::float32, 3 * mega),
      tensor(DType::float32, 4 * mega), tensor(DType::float32, mega)};
  CHECK(plan_buckets(parameters, 5 * mega) ==
        std::vector<std::vector<std::size_t>>{{4}, {3, 2}, {0}, {1}});
  CHECK(plan_buckets(parameters, 0).size() == 5);
  CHECK(plan_buckets({}, mega).empty());
}

TEST_CASE("gradients become the mean over samples, and statistics those of the first at work") {
  const test::MeetingMembers members(2);
  test::at_once(2, [&](std::size_t rank) {
    Node node(rank == 0 ? std::vector<std::optional<float>>{2.F, 8.F}
                        : std::vector<std::optional<float>>{6.F, std::nullopt});
    node.model.value(1) = static_cast<float>(rank + 5);
    node.replica.set_samples(rank == 0 ? 30 : 10);
    const auto group = group_of(members, rank);
    node.replica.enter(*group, {});
    for (int step = 0; step < 2; ++step) {
      CAPTURE(step);
      node.program.backward();
      const StepResult result = node.replica.exchange();
      REQUIRE(result.tally);
      CHECK(result.tally->samples == 40);
      CHECK(result.bytes == 16);
      CHECK(node.program.gradients[0] == 3.F);
      CHECK(node.program.gradients[1] == 6.F);  // nobody's zeros left out
      CHECK(node.model.value(1) == 5);
      node.program.gradients = {rank == 0 ? 2.F : 6.F, 6.F};
    }
    node.replica.drop();
    group->leave(test::patience);
  });
}

TEST_CASE("a node without a backward pass sends what it has accumulated, or zeros") {
  const test::MeetingMembers members(2);
  test::at_once(2, [&](std::size_t rank) {
    Node node({4.F, 4.F});
    const auto group = group_of(members, rank);
    node.replica.enter(*group, {});
    node.replica.set_accumulating(true);
    node.program.backward();
    node.replica.set_accumulating(false);
    CHECK(node.replica.exchange().tally->samples == 2);
    CHECK(node.program.gradients[0] == 4.F);

    if (rank == 0) node.program.backward();  // the other one has no batch
    CHECK(node.replica.exchange().tally->samples == 1);
    CHECK(node.program.gradients[1] == 4.F);

    const StepResult last = rank == 0 ? node.replica.exchange_joined() : node.replica.exchange();
    CHECK(last.tally->joined == 1);
    CHECK(last.tally->first_at_work == 1);
    CHECK_FALSE(node.program.gradients[0]);  // of no member
    node.replica.drop();
    group->leave(test::patience);
  });
}

TEST_CASE("a second backward pass before the step is refused") {
  const test::MeetingMembers members(1);
  Node node({1.F, 1.F});
  const auto group = group_of(members, 0);
  node.replica.enter(*group, {});
  node.program.backward();
  CHECK_THROWS_WITH_AS(node.program.backward(), doctest::Contains("second backward pass"),
                       std::logic_error);
  node.replica.drop();
}

TEST_CASE("a step whose group broke is repeated in the next one with the gradients of this node") {
  const test::MeetingMembers first(2), next(1);
  test::at_once(2, [&](std::size_t rank) {
    auto group = group_of(first, rank);
    if (rank == 1) return group->abort();
    Node node({3.F, 5.F});
    node.replica.enter(*group, {});
    node.program.backward();
    const StepResult failed = node.replica.exchange();
    REQUIRE(failed.error);
    CHECK(failed.error->failure() == Failure::lost);
    CHECK(node.program.gradients[0] == 3.F);
    node.replica.drop();
    group = group_of(next, 0);
    node.replica.enter(*group, {});
    REQUIRE(node.replica.repeat().tally);
    CHECK(node.program.gradients[0] == 3.F);
    CHECK(node.program.gradients[1] == 5.F);
    node.replica.drop();
  });
}

TEST_CASE("an exchange that waits ends when the node breaks it off") {
  const test::MeetingMembers members(2);
  std::array<std::unique_ptr<StepGroup>, 2> groups;
  test::at_once(2, [&](std::size_t rank) { groups[rank] = group_of(members, rank); });
  Node node({1.F, 1.F});
  node.replica.enter(*groups[0], {});
  std::thread ends([&] { node.replica.break_off(); });
  CHECK(node.replica.exchange().error);
  ends.join();
  node.replica.drop();
}

TEST_CASE("the mean of models that were trained apart has the same bits on all nodes") {
  const test::MeetingMembers members(3);
  std::array<float, 3> found{};
  test::at_once(3, [&](std::size_t rank) {
    Node node({1.F, 1.F});
    node.model.value(0) = rank == 1 ? 100.F : static_cast<float>(rank);
    const auto group = group_of(members, rank);
    node.replica.average_model(*group, {true, false, true});
    found[rank] = node.model.value(0);
    group->leave(test::patience);
  });
  CHECK(found == std::array<float, 3>{1, 1, 1});
}

TEST_CASE("a mean of models that fails leaves each as it was") {
  const test::MeetingMembers members(2);
  test::at_once(2, [&](std::size_t rank) {
    Node node({1.F, 1.F});
    node.model.value(0) = static_cast<float>(rank) + 1;
    const auto group = group_of(members, rank);
    if (rank == 1) return group->abort();
    CHECK_THROWS_AS(node.replica.average_model(*group, {false, true}), CollectiveError);
    CHECK(node.model.value(0) == 1.F);
  });
}

TEST_CASE("what a node tells of a next group ends with its group") {
  const test::MeetingMembers first(1), next(1);
  Node node({1.F, 1.F});
  auto group = group_of(first, 0);
  node.replica.enter(*group, {});
  node.replica.set_note(7);
  node.program.backward();
  CHECK(node.replica.exchange().tally->notes.front() == 7);
  node.replica.drop();
  group = group_of(next, 0);
  node.replica.enter(*group, {});
  node.program.backward();
  CHECK(node.replica.exchange().tally->notes.front() == 0);
  node.replica.drop();
}

}  // namespace dpwa::collective
