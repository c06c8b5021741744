#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

#include "adapters/collective/engine/device_staging.h"
#include "dpwa/collectives/operation_queue.h"

namespace dpwa::collective {

// An operation as c10d sees it.
class DpwaWork final : public c10d::Work {
 public:
  // `call`: which `queue` has been given. `staged`: the results are there once these copies are
  // complete; null: when it has ended.
  DpwaWork(int rank, c10d::OpType type, std::shared_ptr<collectives::OperationQueue> queue,
           std::shared_ptr<collectives::Operation> call, std::shared_ptr<StagedTensor> staged)
      : Work(rank, type),
        queue_(std::move(queue)),
        call_(std::move(call)),
        staged_(std::move(staged)) {}

  // Whoever asks may wait without a call of wait().
  bool isCompleted() override {
    queue_->begin(*call_);
    if (!call_->has_ended()) return false;
    return call_->problem() || !staged_ || staged_->settled();
  }
  void synchronize() override {
    if (staged_) staged_->follow();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    if (timeout == kNoTimeout) {
      queue_->finish(*call_);
    } else {
      queue_->begin(*call_);
      if (!queue_->wait(*call_, std::chrono::steady_clock::now() + timeout))
        throw std::runtime_error("engine dpwa: the operation has not ended in time");
    }
    call_->rethrow();
    synchronize();
    return true;
  }

 private:
  const std::shared_ptr<collectives::OperationQueue> queue_;
  const std::shared_ptr<collectives::Operation> call_;
  const std::shared_ptr<StagedTensor> staged_;
};

}  // namespace dpwa::collective
