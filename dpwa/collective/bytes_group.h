#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dpwa/collective/error.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/collectives/form_group.h"
#include "dpwa/collectives/operation_queue.h"
#include "interpolation/kernels/dtype.h"

namespace dpwa::collective {

// A group whose operations are those of dpwa/collectives, on bytes in host memory: for frameworks
// that have no groups of their own. Large all-reduces run on a thread of the group while their
// caller goes on.
class BytesGroup final : public StepGroup {
 public:
  // Its `form` gives a BytesGroup. `engine`: the name that all members must have.
  static Connector connector(const std::string& engine);

  ~BytesGroup() override;

  // An operation under way.
  using WorkPtr = std::shared_ptr<collectives::Operation>;
  // Replaces each number by the sum of those of all members. `data` lives until wait() has
  // returned, or as long as `owner`, which the work holds until it has ended.
  WorkPtr begin_sum(std::span<std::byte> data, DType type,
                    std::shared_ptr<std::byte> owner = nullptr) const;
  WorkPtr begin_broadcast(std::span<std::byte> data, int root) const;
  // Until it has ended, well or not: nothing touches its data afterwards. Returns the failure.
  std::optional<CollectiveError> wait(const WorkPtr& work, const std::string& what) const;

  // Memory from which an all-reduce takes numbers without a copy, or other memory; zeroed.
  std::shared_ptr<std::byte> allocate(std::size_t bytes) const;

  const std::string& engine() const override { return engine_; }
  const std::string& setting() const override { return formed_.setting; }
  void abort() noexcept override { break_off(-1); }
  void abandon(int rank) noexcept override { break_off(rank); }
  // Any thread. -1: no rank is to blame.
  void break_off(int rank) const noexcept;
  bool aborted() const override { return aborted_.load(); }
  bool broken() const override { return aborted() || broken_->load(); }
  std::optional<int> lost_rank() const override;
  void leave(std::chrono::milliseconds limit) noexcept override;
  void run(const std::string& what, const std::function<void()>& operation) const override;
  void gather(std::span<const std::byte> own, std::span<std::byte> all) const override;
  void broadcast(std::span<std::byte> data, int root) const override;

 private:
  using Broken = std::shared_ptr<std::atomic<bool>>;
  BytesGroup(std::string engine, const GroupOptions& options, collectives::FormedGroup formed,
             Broken broken);
  WorkPtr begin(std::size_t bytes, std::function<void()> perform) const;
  void finish(const WorkPtr& work) const;  // throws the failure of the engine
  CollectiveError failure_of(const std::string& what, const std::exception& error) const;

  const std::string engine_;
  collectives::FormedGroup formed_;
  const Broken broken_;
  mutable std::atomic<bool> aborted_ = false;
  const std::unique_ptr<collectives::OperationQueue> queue_;
};

}  // namespace dpwa::collective
