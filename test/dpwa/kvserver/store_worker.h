#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/config/config.h"
#include "dpwa/kvstore/worker_engine.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/store_link.h"

namespace dpwa::test {

// Servers on free ports of this host, and two workers w1 and w2 that need not run.
Config store_config(std::size_t servers, KvstoreType type = KvstoreType::dist_sync);

// A worker of the store without a model: its engine over real connections, on a thread of its own.
// It takes part at once. Its values are vectors of fp32.
class StoreWorker {
 public:
  StoreWorker(const Config& config, const std::string& name);
  ~StoreWorker();  // stops

  // Each waits for its end. False, or empty: not within the patience of tests.
  bool joined();
  bool init(const kvstore::Key& key, const std::vector<float>& values);
  // `optimizer`: plain SGD with this rate; 0: the merged value replaces the stored one.
  bool push(const kvstore::Key& key, std::uint64_t step, const std::vector<float>& gradient,
            double rate = 0);
  std::vector<float> pull(const kvstore::Key& key, std::uint64_t clock);
  // Of the last request that a server refused.
  std::string problem();
  // Why a server does not take it in.
  std::string refusal();

  // Any thread: runs on that of the engine.
  void call(std::function<void(kvstore::WorkerEngine&)> action);
  kvstore::Epoch epoch();
  bool left_out();

 private:
  using Event = kvstore::WorkerEngine::Event;
  boost::asio::awaitable<void> tick();
  void deliver();
  template <typename Wanted>
  std::optional<Wanted> wait_for(const std::function<bool(const Wanted&)>& condition);

  const std::vector<NodeEntry> servers_;
  boost::asio::io_context io_{1};
  LocalProcess local_;
  kvstore::WorkerEngine engine_;
  class Link;
  std::map<std::string, std::shared_ptr<Link>> links_;
  boost::asio::steady_timer timer_;
  bool stopped_ = false;
  Mutex mutex_;
  std::vector<Event> events_ DPWA_GUARDED_BY(mutex_);
  std::map<kvstore::Key, std::size_t> elements_;
  std::thread thread_;
};

}  // namespace dpwa::test
