#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/rules/options.h"

namespace dpwa {

struct ServerOptions : ServingOptions {
  std::string bind_address = "127.0.0.1";  // numeric
  std::uint16_t port = 0;                  // 0 = any free port
  bool admits_nodes = true;  // false: connections of nodes are closed without an answer
  Duration handshake_timeout = std::chrono::seconds(5);
  // Bounds of the deadline that a caller may state, of ordinary and of full pulls. The first one is
  // also the deadline of every other answer.
  Duration max_reply_time = std::chrono::seconds(10);
  Duration max_full_reply_time = std::chrono::seconds(10);
  Duration longest_reply(bool full) const { return full ? max_full_reply_time : max_reply_time; }
  Duration drain_time = std::chrono::milliseconds(300);  // for replies in flight at stop
};

// A node has called. Called on the Rx thread; must not block. May be empty.
using OnContact = std::function<void(const std::string& peer, std::uint64_t incarnation)>;

}  // namespace dpwa
