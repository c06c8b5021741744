#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/kvserver/epoch_words.h"
#include "dpwa/kvserver/link.h"
#include "dpwa/kvserver/shared_memory_server.h"
#include "dpwa/kvserver/snapshot_keeper.h"
#include "dpwa/kvserver/store_handler.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/node/endpoint.h"

namespace dpwa::kvserver {

// One incarnation of a server of the store: its engine, and the connections that carry the engine's
// messages. It ends when it is stopped, or when the other servers have gone on without it. After
// listen() it is used by one thread.
class StoreRun {
 public:
  // `config.self`: a name of kvstore.servers. Throws ConfigError when the files of the security
  // section cannot be used.
  StoreRun(const Config& config, std::uint64_t incarnation);
  ~StoreRun();

  // Throws std::runtime_error when it cannot listen within `patience`.
  void listen(Duration patience) { endpoint_.listen(patience); }
  void run();  // returns when the server has ended
  // Any thread. When all workers have left, their last snapshot is finished first, for 3 s at most.
  void stop();
  bool deposed() const { return deposed_; }
  // As ServerEngine::outdated_by(), after run().
  std::optional<std::uint64_t> outdated_by() const { return engine_.outdated_by(); }
  // It cannot start from its snapshots, or its settings are not those of the others.
  bool refused() const { return refused_; }
  Endpoint& endpoint() { return endpoint_; }

 private:
  boost::asio::awaitable<void> tick();
  void receive(const kvstore::MemberId& from, std::uint64_t tag, kvstore::Message message);
  void deliver();  // sends the messages of the engine
  void end();
  void note_changes();
  void note_waiting(TimePoint now);
  std::string status();

  const Config config_;
  net::IoThread thread_;
  Endpoint endpoint_;  // runs on the thread of run()
  kvstore::ServerEngine engine_;
  std::unique_ptr<SnapshotKeeper> snapshots_;  // null when snapshots are not configured
  std::unique_ptr<SharedMemoryServer>
      shared_memory_;                // null when no worker reads memory of this process
  StoreHandler* handler_ = nullptr;  // of endpoint_
  std::map<std::string, std::shared_ptr<Link>> links_;
  boost::asio::steady_timer timer_;
  EpochWords words_;
  LogLimiter complaints_;
  kvstore::ShardCounts counted_;
  TimePoint told_waiting_;  // or when this began
  bool told_of_ended_run_ = false;
  bool ended_ = false;
  std::optional<TimePoint> ends_at_;  // at the latest: it is to stop
  int ticks_since_last_ = 0;          // since the last snapshot is on all disks
  bool deposed_ = false;
  bool refused_ = false;
  int ticks_refused_ = 0;
  bool told_ = false;  // that values are lost
};

}  // namespace dpwa::kvserver
