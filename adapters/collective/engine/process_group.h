#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "adapters/collective/engine/engine.h"
#include "dpwa/collective/error.h"
#include "dpwa/collective/step_group.h"

namespace dpwa::collective {

// A group whose operations are those of c10d.
class ProcessGroup final : public StepGroup {
 public:
  // Blocks until all members have come to `store` and are connected, for form_timeout at most.
  // Null: for an engine that has its members. Each rank comes once, and all with the same engine,
  // size and epoch. Ignores SIGPIPE if the program has no handler for it. Throws CollectiveError.
  static std::unique_ptr<ProcessGroup> form(Engine engine,
                                            const c10::intrusive_ptr<c10d::Store>& store,
                                            const GroupOptions& options);
  // Aborts unless the group was left; never waits for a member. The connections are closed in the
  // background.
  ~ProcessGroup() override;

  const std::string& engine() const override { return engine_.name; }
  const std::string& setting() const override { return connection_.setting; }

  // Connection::stream_ordered, for operations on this device.
  bool is_stream_ordered(const c10::Device& device) const {
    return connection_.stream_ordered && !device.is_cpu();
  }
  const Engine& engine_used() const { return engine_; }

  // For c10d::Reducer, and the operations of this layer.
  const c10::intrusive_ptr<c10d::ProcessGroup>& c10d() const { return connection_.group; }

  // Whether a wait needs no limit of its own: the end of the group ends it.
  bool ends_waits() const { return connection_.ends_waits; }

  void abort() noexcept override;
  void abandon(int rank) noexcept override;
  bool aborted() const override { return aborted_.load(); }
  bool broken() const override { return aborted() || broken_->load(); }
  std::optional<int> lost_rank() const override { return connection_.lost_rank(); }
  void leave(std::chrono::milliseconds limit) noexcept override;

  void run(const std::string& what, const std::function<void()>& operation) const override;
  void gather(std::span<const std::byte> own, std::span<std::byte> all) const override;
  void broadcast(std::span<std::byte> data, int root) const override;
  // The current exception as a CollectiveError; says so when the group was aborted.
  CollectiveError error(const std::string& what) const;

 private:
  ProcessGroup(Engine engine, const GroupOptions& options, Connection connection,
               std::shared_ptr<const std::atomic<bool>> broken);

  Engine engine_;
  Connection connection_;
  std::atomic<bool> aborted_ = false;
  std::shared_ptr<const std::atomic<bool>> broken_;  // set by the engine
};

// Ignores SIGPIPE unless the program handles it, because a write to a peer that has ended would
// otherwise end the process. Any thread.
void ignore_sigpipe();

}  // namespace dpwa::collective
