#include <ATen/ops/empty.h>

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "adapters/collective/engine/exchange.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/engine/stream_waits.h"
#include "test/adapters/doctest_with_torch.h"

// Waits for operations on devices, with operations that stand for them.
using namespace dpwa::collective;
using namespace std::chrono_literals;

namespace {

// Gloo that calls itself stream-ordered, as NCCL is.
Engine ordered_engine() {
  Engine engine = make_engine(EngineKind::gloo);
  engine.form = [form = engine.form](const c10::intrusive_ptr<c10d::Store>& store,
                                     const GroupOptions& options) {
    Connection connection = form(store, options);
    connection.stream_ordered = true;
    return connection;
  };
  return engine;
}

std::unique_ptr<ProcessGroup> group_of_one(Engine engine) {
  return ProcessGroup::form(std::move(engine), c10::make_intrusive<c10d::HashStore>(),
                            GroupOptions());
}

// An operation of a device, which ends when it has been looked at often enough.
class DeviceWork final : public c10d::Work {
 public:
  bool isCompleted() override { return ++looks > 3; }
  bool wait(std::chrono::milliseconds timeout) override {
    waits.push_back({looks > 3, timeout});
    return true;
  }

  struct Wait {
    bool completed = false;  // as it was looked at
    std::chrono::milliseconds timeout{};
  };
  int looks = 0;
  std::vector<Wait> waits;
};

}  // namespace

TEST_CASE("tensors of GPUs have a back end in a group of Gloo") {
  const auto group = group_of_one(make_engine(EngineKind::gloo));
  CHECK(group->c10d()->getBackend(at::kCUDA) == group->c10d()->getBackend(at::kCPU));
}

TEST_CASE("an operation is looked at where a limit of a wait would end it, else waited for") {
  const auto device = at::empty({1}, at::kMeta);
  const auto host = at::empty({1});
  const auto group = group_of_one(ordered_engine());
  const auto looked_at = c10::make_intrusive<DeviceWork>();
  bounded_wait(*group, looked_at, {device, host});
  REQUIRE(looked_at->waits.size() == 1);
  CHECK(looked_at->waits[0].completed);
  CHECK(looked_at->waits[0].timeout == 0ms);
  const auto waited_for = c10::make_intrusive<DeviceWork>();
  bounded_wait(*group, waited_for, {host, device});
  REQUIRE(waited_for->waits.size() == 1);
  CHECK(waited_for->waits[0].timeout > 0ms);
  const auto gloo = group_of_one(make_engine(EngineKind::gloo));  // copies tensors of devices
  const auto copied = c10::make_intrusive<DeviceWork>();
  bounded_wait(*gloo, copied, {device});
  CHECK(copied->waits[0].timeout > 0ms);
}

TEST_CASE("a step goes on while its operations run on the device, and ends those before it") {
  const auto tensor = at::empty({1}, at::kMeta);
  const auto group = group_of_one(ordered_engine());
  StreamWaits waits(*group);
  const auto first = c10::make_intrusive<DeviceWork>();
  waits.add(first, tensor);
  REQUIRE(first->waits.size() == 1);  // of the stream
  CHECK(first->looks == 0);
  CHECK_FALSE(waits.end_step_before("averaging"));
  CHECK(first->looks == 0);
  waits.end_step();
  CHECK_FALSE(waits.empty());
  const auto second = c10::make_intrusive<DeviceWork>();
  waits.add(second, tensor);
  CHECK_FALSE(waits.end_step_before("averaging"));
  CHECK(first->looks > 3);
  CHECK(second->looks == 0);
}

TEST_CASE("operations on a device that a lost rank leaves behind are one error of the next step") {
  const auto group = group_of_one(ordered_engine());
  StreamWaits waits(*group);
  const auto stuck = c10::make_intrusive<DeviceWork>();
  stuck->looks = -1000000;
  waits.add(stuck, at::empty({1}, at::kMeta));
  waits.end_step();
  group->abort();
  const auto problem = waits.end_step_before("averaging");
  REQUIRE(problem.has_value());
  CHECK(problem->failure() == Failure::lost);
  CHECK(problem->operation() == "averaging");
}
