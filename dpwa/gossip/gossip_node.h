#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/config/reload.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/gossip/contacts.h"
#include "dpwa/net/client.h"
#include "dpwa/net/local_node.h"
#include "dpwa/node/endpoint.h"
#include "dpwa/rules/model_sketch.h"
#include "dpwa/rules/sketch_pace.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The network side of a process that trains by gossip averaging: an Endpoint, whose Rx thread also
// serves the latest snapshot, and a Tx thread that pulls from peers. Each has an event loop of its
// own, so that neither delays the other or the trainer. Both threads block all signals. Used by one
// (trainer) thread.
class GossipNode {
 public:
  struct Options : PullRunOptions {
    std::uint64_t incarnation = 0;  // above that of every earlier start of this node
    // As of Parameters.
    std::function<AlignedBuffer(std::size_t bytes, bool shared)> allocate = AlignedBuffer::of_host;
    TimeSource now = std::chrono::steady_clock::now;  // as in ClientOptions
  };

  // Throws ConfigError when the files of the security section cannot be used.
  GossipNode(const Config& config, Manifest manifest, Options options);
  ~GossipNode();  // stops
  GossipNode(const GossipNode&) = delete;
  GossipNode& operator=(const GossipNode&) = delete;

  void start(Duration patience = Duration::zero());  // as the Endpoint does
  void stop();  // from any state, in well under a second; idempotent

  // Takes over the other nodes of a changed cluster file, and its bounds for the time of replies.
  void take_up(const ReloadPlan& plan);
  Endpoint& endpoint() { return endpoint_; }
  LocalNode& local() { return local_; }
  Client& client() { return client_; }

 private:
  void take_leave();
  void take_contacts();
  boost::asio::awaitable<std::string> describe();
  void begin_sketch();  // where one is due
  void sketch_a_piece();
  const ModelSketch* recent_sketch() const;  // null: none that is finite

  boost::asio::io_context tx_io_{1};
  Contacts contacts_;  // from the Rx to the Tx thread
  Endpoint endpoint_;  // its I/O thread is the Rx thread
  LocalNode& local_;   // of endpoint_
  Client client_;      // Tx thread
  struct Sketching;
  SketchPace sketch_pace_;                // Tx thread
  std::unique_ptr<Sketching> sketching_;  // Tx thread: one that is under way
  std::optional<ModelSketch> sketch_;     // Tx thread: of a recent snapshot
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> tx_work_;
  std::thread tx_thread_;
};

}  // namespace dpwa
