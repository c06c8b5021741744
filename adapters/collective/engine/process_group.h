#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/collective/engine/engine.h"
#include "adapters/collective/engine/error.h"

namespace dpwa::collective {

// This node's place in one group of one epoch. Operations are called by one thread at a time, in
// the same order by all members. abort() and aborted() by any thread.
//
// A group is useless after a member has died: its operations fail, at the latest after the timeout
// of the group. Abort it, destroy it, and form the next one.
class ProcessGroup {
 public:
  // Blocks until all members have come to `store` and are connected, for form_timeout at most.
  // Null: for an engine that has its members. Each rank comes once, and all with the same engine,
  // size and epoch. Ignores SIGPIPE if the program has no handler for it. Throws CollectiveError.
  static std::unique_ptr<ProcessGroup> form(std::shared_ptr<const Engine> engine,
                                            const c10::intrusive_ptr<c10d::Store>& store,
                                            const GroupOptions& options);
  // Aborts unless the group was left; never waits for a member. The connections are closed in the
  // background.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  std::uint64_t epoch() const { return options_.epoch; }
  // By rank; empty: they have none.
  const std::vector<std::string>& names() const { return options_.names; }
  const std::string& engine() const { return engine_->name(); }

  // Connection::stream_ordered, for operations on this device.
  bool is_stream_ordered(const c10::Device& device) const {
    return connection_.stream_ordered && !device.is_cpu();
  }
  const std::shared_ptr<const Engine>& shared_engine() const { return engine_; }
  const GroupOptions& options() const { return options_; }

  // For c10d::Reducer and for operations that this layer does not have.
  const c10::intrusive_ptr<c10d::ProcessGroup>& c10d() const { return connection_.group; }

  // Ends all operations under way with an error, here and at the other members, within
  // milliseconds. Every later operation fails. Never throws.
  void abort() noexcept;
  // The same, because `rank` is lost. The others are told, if the engine can do that.
  void abandon(int rank) noexcept;
  bool aborted() const { return aborted_.load(); }
  // Whether it is of no further use: aborted here, or broken by the end of another member.
  bool broken() const { return aborted() || broken_->load(); }
  // How its members are connected; empty: as always with this engine.
  const std::string& setting() const { return connection_.setting; }
  // Whether a wait needs no limit of its own: the end of the group ends it.
  bool ends_waits() const { return connection_.ends_waits; }
  // The rank whose end broke the group, as far as this member knows. If several ended at once, any
  // of them; none if a member has aborted. A hint for messages: it may arrive some milliseconds
  // after the first error, or never.
  std::optional<int> lost_rank() const { return connection_.lost_rank(); }

  // Leaves in order: waits, at most `limit`, until all members call it, so that the others still
  // receive their data. After this the group can only be destroyed. Never throws.
  void leave(std::chrono::milliseconds limit) noexcept;

  // Runs `operation`, and converts its exceptions to a CollectiveError with the name `what`.
  void run(const std::string& what, const std::function<void()>& operation) const;
  // The current exception as a CollectiveError; says so when the group was aborted.
  CollectiveError error(const std::string& what) const;

 private:
  ProcessGroup(std::shared_ptr<const Engine> engine, const GroupOptions& options,
               Connection connection, std::shared_ptr<const std::atomic<bool>> broken);

  std::shared_ptr<const Engine> engine_;
  GroupOptions options_;
  Connection connection_;
  std::atomic<bool> aborted_ = false;
  std::shared_ptr<const std::atomic<bool>> broken_;  // set by the engine
};

// Runs `work` on a thread of its own. For slow work whose result is not needed, such as the end of
// a failed group, or an attempt to form a group that was given up. The end of the program waits
// for it, two seconds at most.
// Any thread; `work` must not throw.
void finish_aside(std::function<void()> work);

// Ignores SIGPIPE unless the program handles it, because a write to a peer that has ended would
// otherwise end the process. Any thread.
void ignore_sigpipe();

}  // namespace dpwa::collective
