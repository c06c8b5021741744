#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "test/support/raw_socket.h"

namespace dpwa::test {

// A listening socket, by default on loopback, whose every connection is handed to a script, one
// after the other, on a thread of its own. The connection closes when the script returns. At the
// end every blocking call of the script fails, so that it returns.
class FakePeer {
 public:
  using Script = std::function<void(RawSocket& connection)>;

  explicit FakePeer(Script script, std::uint16_t port = 0);
  // Takes over a descriptor that listens.
  struct Listener {
    int descriptor;
  };
  FakePeer(Script script, Listener listener);
  ~FakePeer();

  std::uint16_t port() const { return port_; }
  int connections() const { return connections_; }

 private:
  void run();

  const Script script_;
  const int listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  int current_ = -1;      // guarded by mutex_: descriptor of the connection under way
  bool stopped_ = false;  // guarded by mutex_
  std::thread thread_;
};

// Stands between a caller and a node on loopback, one connection at a time, and may change what the
// node sends.
class TamperingProxy {
 public:
  // `bytes`: what the node has just sent, from byte `offset` of its stream on; they go on as they
  // are left. False: the connection is cut after them.
  using Tamper = std::function<bool(std::vector<std::byte>& bytes, std::size_t offset)>;

  TamperingProxy(std::uint16_t node, Tamper tamper);
  std::uint16_t port() const { return peer_.port(); }

 private:
  FakePeer peer_;
};

}  // namespace dpwa::test
