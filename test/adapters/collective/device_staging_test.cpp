#include "adapters/collective/engine/device_staging.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <cstddef>
#include <memory>

#include "adapters/collective/engine/dpwa_work.h"
#include "adapters/collective/engine/group_tensors.h"
#include "dpwa/collectives/group.h"
#include "dpwa/collectives/operation_queue.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/fake_accelerator.h"

// Tensors of a device on their way through host memory, with the CPU in the place of the device.
namespace dpwa::collective {
namespace {

using test::FakeAccelerator;

// Host memory as it is asked for.
struct Memory {
  std::vector<std::size_t> allocated;

  std::shared_ptr<DeviceStaging> staging() {
    return std::make_shared<DeviceStaging>(at::kCPU, [this](std::size_t bytes) {
      allocated.push_back(bytes);
      return AlignedBuffer(bytes);
    });
  }
};

// A group of one, whose sum doubles.
class Doubling final : public collectives::Group {
 public:
  Doubling() : Group(0, 1) {}
  void allreduce(std::span<std::byte> data, DType, collectives::Reduction) override {
    auto* const numbers = reinterpret_cast<float*>(data.data());
    for (std::size_t i = 0; i < data.size() / sizeof(float); ++i) numbers[i] *= 2;
  }
  void allgather(std::span<const std::byte>, std::span<std::byte>) override {}
  void broadcast(std::span<std::byte>, int) override {}
  void alltoall(std::span<const std::byte>, std::span<const std::size_t>, std::span<std::byte>,
                std::span<const std::size_t>) override {}
  void barrier() override {}
  void set_timeout(Duration) override {}
  void abort(int) noexcept override {}
  int lost() const override { return -1; }
};

// An all-reduce of such a tensor, as the queue performs it.
c10::intrusive_ptr<c10d::Work> doubled(collectives::Group& group,
                                       const std::shared_ptr<collectives::OperationQueue>& queue,
                                       const std::shared_ptr<StagedTensor>& staged) {
  const auto call = std::make_shared<collectives::Operation>([&group, staged] {
    group.allreduce(memory_of(staged->host()), DType::float32, collectives::Reduction::sum);
    staged->give_back();
  });
  queue->add(call, /*prompt=*/false);
  return c10::make_intrusive<DpwaWork>(0, c10d::OpType::ALLREDUCE, queue, call, staged);
}

}  // namespace

TEST_CASE("a tensor leaves behind its caller's work, and returns beside what leaves after it") {
  FakeAccelerator device;
  Memory memory;
  const auto staging = memory.staging();
  const at::Tensor first = at::ones({8});
  const at::Tensor second = at::full({4}, 3.0);
  StagedTensor staged(staging, first);
  StagedTensor next(staging, second);
  const std::string out =
      "record training; wait on side; record side; record side; keep for side; ";
  CHECK(device.log == out + out);
  device.log.clear();
  staged.host().mul_(2);
  CHECK(device.log == "synchronize; ");
  CHECK(device.awaited == std::vector{1, 4, 2});  // for its own copy alone
  device.log.clear();
  staged.give_back();
  CHECK(device.log == "record side 2; record side 2; keep for side 2; ");
  device.log.clear();
  staged.follow();
  CHECK(device.log == "wait on training; ");
  CHECK(at::equal(first, at::full({8}, 2.0)));
  CHECK(at::equal(next.host(), second));
}

TEST_CASE("memory that a copy still uses serves no other tensor, and later ones take it again") {
  FakeAccelerator device;
  Memory memory;
  const auto staging = memory.staging();
  const at::Tensor tensor = at::ones({8});
  device.complete = false;
  { const StagedTensor failed(staging, tensor); }
  { const StagedTensor other(staging, tensor); }
  CHECK(memory.allocated.size() == 2);
  device.complete = true;
  const StagedTensor again(staging, tensor);
  const StagedTensor smaller(staging, at::ones({3}));
  CHECK(memory.allocated.size() == 2);
  const StagedTensor third(staging, tensor);
  CHECK(memory.allocated.size() == 3);
}

TEST_CASE("who waits for an operation on a device goes on, and the work after it waits there") {
  FakeAccelerator device;
  Memory memory;
  Doubling group;
  const auto queue = std::make_shared<collectives::OperationQueue>();
  const at::Tensor tensor = at::ones({8});
  const auto staging = memory.staging();
  const auto work = doubled(group, queue, std::make_shared<StagedTensor>(staging, tensor));
  work->wait();
  CHECK(at::equal(tensor, at::full({8}, 2.0)));
  CHECK(device.log.ends_with("keep for side 2; wait on training; "));
  device.complete = false;
  CHECK_FALSE(work->isCompleted());
  device.complete = true;
  CHECK(work->isCompleted());
  queue->end();
}

}  // namespace dpwa::collective
