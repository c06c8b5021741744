#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

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
      std::exchange(work_, nullptr)->finish(problem);
    }

    c10::intrusive_ptr<DpwaWork> work_;
    collectives::Group& group_;
    const std::size_t bytes_;
    Perform perform_;
  };

  // `staged`: its results are there once these copies are complete; null: when it has ended.
  DpwaWork(int rank, c10d::OpType type, std::shared_ptr<StagedTensor> staged)
      : Work(rank, type), staged_(std::move(staged)) {}

  void begins_as(const std::shared_ptr<collectives::OperationQueue>& queue,
                 const std::shared_ptr<collectives::Operation>& task) {
    queue_ = queue;
    task_ = task;
  }

  // Whoever asks may wait without a call of wait().
  bool isCompleted() override {
    if (!task_->has_ended()) queue_->begin(*task_);
    if (!c10d::Work::isCompleted()) return false;
    return exception() || !staged_ || staged_->settled();
  }
  void synchronize() override {
    if (staged_) staged_->follow();
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

 private:
  const std::shared_ptr<StagedTensor> staged_;
  std::shared_ptr<collectives::OperationQueue> queue_;
  std::shared_ptr<collectives::Operation> task_;
};

}  // namespace dpwa::collective
