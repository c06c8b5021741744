#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/config/reload.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/net/client.h"
#include "dpwa/net/local_node.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The network side of a training process: an Rx thread that serves the latest snapshot and a Tx
// thread that pulls from peers, each with an event loop of its own, so that neither delays the
// other or the trainer. Both threads block all signals. Used by one (trainer) thread.
class Node {
 public:
  struct Options : PullRunOptions {
    std::uint64_t incarnation = 0;  // above that of every earlier start of this node
    BufferAllocator allocate = [](std::size_t bytes) { return AlignedBuffer(bytes); };
    TimeSource now = std::chrono::steady_clock::now;  // as in ClientOptions
  };

  // Throws ConfigError when the files of the security section cannot be used, or this host cannot
  // do what the file asks of it (check_host).
  Node(const Config& config, Manifest manifest, Options options);
  ~Node();  // stops
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Listens and runs. When the address is in use, tries again until `patience` is over; when a node
  // of this cluster answers there, gives up after about a second. Throws std::runtime_error when it
  // cannot listen at the address.
  void start(Duration patience = Duration::zero());
  void stop();  // from any state, in well under a second; idempotent

  // Reads the files of the security section again, if there are any, and logs the result. New
  // connections use them; existing connections continue. When they cannot be used, the old ones
  // stay in use. Any thread.
  void reload_security();

  std::uint16_t port() const;  // in use, once started; for tests
  // Takes over the other nodes of a changed cluster file, and its bounds for the time of replies.
  void take_up(const ReloadPlan& plan);
  LocalNode& local();
  Client& client();
  // The position in the cluster file of each peer; the file also lists this node.
  static std::vector<std::size_t> file_indices(const Config& config);

 private:
  class Threads;
  std::unique_ptr<Threads> threads_;
};

}  // namespace dpwa
