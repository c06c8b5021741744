#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/kvserver/snapshot_folder.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/snapshot_plan.h"
#include "dpwa/log/log.h"
#include "dpwa/net/io_thread.h"

namespace dpwa::kvserver {

// The snapshots of one server on its disk: does there what a SnapshotPlan wishes, on a thread of
// its own, so that no message waits for the disk. Used on the I/O thread, which is the thread of
// the engine. Memory that is refused on the thread of the disk ends the process, as on a network
// thread.
class SnapshotKeeper {
 public:
  // `config` has kvstore.snapshots. Throws ConfigError when the folder cannot be used.
  SnapshotKeeper(boost::asio::io_context& io, const Config& config, kvstore::ServerEngine& engine,
                 TimePoint now);
  ~SnapshotKeeper();  // gives up a file that is being written

  // After each tick of the engine.
  void tick(TimePoint now);
  // Why this server cannot start, in one line; none when it can.
  const std::optional<std::string>& refusal() const { return plan_.refusal(); }
  kvstore::SnapshotStatus status(TimePoint now) const { return plan_.status(now); }
  // All workers have left, and the snapshot of their last steps is not on all disks yet.
  bool last_is_due() const { return plan_.last_is_due(); }

 private:
  void perform(kvstore::SnapshotPlan::Load wish);
  void perform(kvstore::SnapshotPlan::Write wish);
  void perform(kvstore::SnapshotPlan::Complete wish);
  void take_up(SnapshotFolder::Contents contents);
  void take_up(const kvstore::SnapshotId& id, SnapshotResult<SnapshotFolder::Loaded> loaded);
  void warn(const std::string& line);
  // Runs `work` on the thread of the disk, and the function that it returns on the I/O thread.
  void on_disk(std::function<std::function<void()>()> work);
  void serve_disk();

  net::IoThread io_thread_;
  boost::asio::io_context& io_;
  kvstore::ServerEngine& engine_;
  const SnapshotHead own_;
  SnapshotFolder folder_;  // the thread of the disk
  kvstore::SnapshotPlan plan_;
  LogLimiter limiter_;

  std::atomic<bool> stop_{false};
  Mutex mutex_;
  Condition changed_;
  std::deque<std::function<std::function<void()>()>> queue_ DPWA_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The fields that the heads of this server's files have in common.
SnapshotHead snapshot_head_of(const Config& config);

}  // namespace dpwa::kvserver
