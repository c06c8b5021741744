#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/kvserver/snapshot_folder.h"
#include "dpwa/kvserver/snapshot_schedule.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/log/log.h"
#include "dpwa/net/io_thread.h"

namespace dpwa::kvserver {

// For the status document.
struct SnapshotStatus {
  std::uint32_t number = 0;  // the last snapshot that all servers have on their disks; 0: none
  double age_s = 0;          // since it was written
  std::uint32_t started_from = 0;  // the snapshot; 0: the servers began empty
  std::uint64_t failures = 0;      // number of parts that could not be written
  bool failing = false;            // the last part could not be written either
};

// The snapshots of one server: starts its engine from the newest one that all servers have, and
// writes its part of new ones. Everything that touches the disk runs on a thread of its own, so
// that no message waits for the disk. Used on the I/O thread, which is the thread of the engine.
// Memory that is refused on the thread of the disk ends the process, as on a network thread.
class SnapshotKeeper {
 public:
  // `config` has kvstore.snapshots. Throws ConfigError when the folder cannot be used.
  SnapshotKeeper(boost::asio::io_context& io, const Config& config, kvstore::ServerEngine& engine,
                 TimePoint now);
  ~SnapshotKeeper();  // gives up a file that is being written

  // After each tick of the engine.
  void tick(TimePoint now);
  // Why this server cannot start, in one line; none when it can.
  const std::optional<std::string>& refusal() const { return refusal_; }
  SnapshotStatus status(TimePoint now) const;
  // All workers have left, and the snapshot of their last steps is not on all disks yet.
  bool last_is_due() const;

 private:
  using Slices = std::map<kvstore::SliceId, kvstore::ShardEngine::Captured>;

  SnapshotSchedule::View view() const;
  void start(TimePoint now);
  void take_up(SnapshotFolder::Contents contents);
  void take_up(const kvstore::SnapshotId& id, SnapshotResult<SnapshotFolder::Loaded> loaded);
  void collect();
  void write(std::uint32_t number);
  void complete(std::uint32_t number);
  void warn(const std::string& line);
  // Runs `work` on the thread of the disk, and the function that it returns on the I/O thread.
  void on_disk(std::function<std::function<void()>()> work);
  void serve_disk();

  net::IoThread io_thread_;
  boost::asio::io_context& io_;
  kvstore::ServerEngine& engine_;
  const std::uint32_t keep_;
  const SnapshotHead own_;
  SnapshotFolder folder_;  // the thread of the disk
  SnapshotSchedule schedule_;
  bool loading_ = false;
  SnapshotFolder::Common common_;  // at the start of all servers
  std::optional<std::string> refusal_;
  std::map<std::uint32_t, Slices> captured_;  // by snapshot
  std::uint32_t written_ = 0;                 // the last snapshot that was given to the disk
  std::uint32_t completed_ = 0;               // the last snapshot whose file got its final name
  std::map<std::uint32_t, TimePoint> stored_;
  SnapshotStatus status_;
  TimePoint last_{};  // when the last complete snapshot was written
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
