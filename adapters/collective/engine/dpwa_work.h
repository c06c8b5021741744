#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "adapters/collective/engine/device_staging.h"
#include "adapters/collective/engine/group_tensors.h"
#include "dpwa/collectives/group.h"
#include "dpwa/collectives/operation_queue.h"

namespace dpwa::collective {

// An operation as c10d sees it. The queue holds it until it has ended.
class DpwaWork final : public c10d::Work {
 public:
  using Perform = std::function<void(collectives::Group&)>;

  class Task final : public collectives::Operation {
   public:
    Task(c10::intrusive_ptr<DpwaWork> work, collectives::Group& group, std::size_t bytes,
         Perform perform)
        : work_(std::move(work)), group_(group), bytes_(bytes), perform_(std::move(perform)) {}

   private:
    void perform() override { perform_(group_); }
    std::string what() const override {
      return c10d::opTypeToString(work_->retrieveOpType()) + ", " + std::to_string(bytes_) +
             " bytes";
    }
    void ended(const std::exception_ptr& problem) override {
      perform_ = nullptr;
      std::exchange(work_, nullptr)->end(problem);
    }

    c10::intrusive_ptr<DpwaWork> work_;
    collectives::Group& group_;
    const std::size_t bytes_;
    Perform perform_;
  };

  // `staged`: of a device; its results are there once these copies are complete.
  DpwaWork(int rank, c10d::OpType type, Tensors results, StagedTensors staged = {})
      : Work(rank, type), results_(std::move(results)), staged_(std::move(staged)) {}

  void begins_as(const std::shared_ptr<collectives::OperationQueue>& queue,
                 const std::shared_ptr<collectives::Operation>& task) {
    queue_ = queue;
    task_ = task;
  }

  std::vector<at::Tensor> result() override { return results_; }
  // Whoever asks may wait without a call of wait().
  bool isCompleted() override {
    if (!task_->has_ended()) queue_->begin(*task_);
    if (!c10d::Work::isCompleted()) return false;
    return exception() || std::ranges::all_of(staged_, [](auto& each) { return each->settled(); });
  }
  void synchronize() override {
    for (const auto& each : staged_) each->follow();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    if (timeout == kNoTimeout) {
      queue_->finish(*task_);
    } else {
      queue_->begin(*task_);
      if (!queue_->wait(*task_, std::chrono::steady_clock::now() + timeout))
        throw std::runtime_error("engine dpwa: the operation has not ended in time");
    }
    if (exception()) std::rethrow_exception(exception());
    synchronize();
    return true;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
      const std::lock_guard lock(mutex_);
      if (!future_)
        future_ =
            c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
      future = future_;
    }
    if (Work::isCompleted()) tell_future();
    queue_->begin(*task_);
    return future;
  }

 private:
  void end(const std::exception_ptr& problem) {
    finish(problem);
    tell_future();
  }
  // Without the lock: callbacks of the future may use this object.
  void tell_future() {
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
      const std::lock_guard lock(mutex_);
      if (!future_ || told_) return;
      told_ = true;
      future = future_;
    }
    if (exception()) {
      future->setError(exception());
    } else {
      for (const auto& each : staged_) each->settle();
      future->markCompleted(c10::IValue(results_));
    }
  }

  const Tensors results_;
  const StagedTensors staged_;
  std::shared_ptr<collectives::OperationQueue> queue_;
  std::shared_ptr<collectives::Operation> task_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool told_ = false;  // the future, of the end
};

}  // namespace dpwa::collective
