#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "adapters/collective/engine/device_staging.h"
#include "adapters/collective/engine/group_tensors.h"
#include "dpwa/collectives/group.h"
#include "dpwa/collectives/operation_queue.h"

namespace dpwa::collective {

// A c10d back end over the project's own groups (dpwa/collectives). It has the operations that this
// layer and c10d::Reducer call, for contiguous tensors; those of other devices travel through host
// memory, for all-reduces and broadcasts beside the work of the device. Large ones are performed on
// a thread of their own, while the caller goes on; small ones by the thread that waits for them.
class DpwaGroup final : public c10d::Backend {
 public:
  // Memory in which the group finds tensors without copying them. Null: there is none.
  using Allocate = std::function<std::shared_ptr<std::byte>(std::size_t bytes)>;

  // `on_broken`: called when this member aborts.
  DpwaGroup(std::unique_ptr<collectives::Group> group, Allocate allocate,
            std::function<void()> on_broken);
  ~DpwaGroup() override;

  const std::string getBackendName() const override { return "dpwa"; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  bool supportsTensorAlloc(c10::DeviceIndex device) override;
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& received,
                        std::vector<std::int64_t>& sent,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  void abort() override { abandon(-1); }
  void shutdown() override;
  // The same, because this rank is lost, which the others are told.
  void abandon(int rank);
  std::optional<int> lost_rank() const;

 private:
  using Perform = std::function<void()>;
  bool end();
  void break_off(int rank);
  std::shared_ptr<StagedTensor> stage(const at::Tensor& tensor);
  // `result`: on the device behind whose work the operation comes; undefined: none.
  WorkPtr start(c10d::OpType type, const at::Tensor& result, std::size_t bytes, Perform perform,
                std::shared_ptr<StagedTensor> staged = nullptr);
  using Change = std::function<void(const at::Tensor& host)>;
  WorkPtr start_in_place(c10d::OpType type, const at::Tensor& tensor, Change change);

  const std::unique_ptr<collectives::Group> group_;
  const Allocate allocate_;
  std::shared_ptr<DeviceStaging> staging_;  // from the first operation on a device on
  const std::shared_ptr<collectives::OperationQueue> queue_;
  const std::function<void()> on_broken_;
  std::atomic<bool> left_ = false;
};

}  // namespace dpwa::collective
