#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/token_bucket.h"

namespace dpwa {

// The facts about one inbound connection.
struct ConnectionFacts {
  enum class Phase { handshake, idle, replying, closing };  // closing: no longer counts
  std::string address;  // the network that it comes from (network.h)
  std::string peer;     // the account of Caller; empty during the handshake
  Phase phase = Phase::handshake;
  TimePoint since{};  // when the phase began
  // A node of the cluster file, or one that this node joined by, that calls from where it is listed
  // or shows its certificate.
  bool of_file = false;
};

// The answer to a new connection: it is admitted, perhaps in place of an older one, or refused.
struct ConnectionVerdict {
  bool admitted = true;
  std::optional<std::size_t> closes;  // index of the connection that makes room
  std::string reason;                 // why it is refused, or what made room
};

// A new connection from `address`. If a bound is reached, a handshake makes room: the oldest one of
// the addresses that have the most handshakes. An honest handshake takes a few round trips, so a
// flood of silent connections displaces itself. If there is no handshake, the connection that has
// been idle longest makes room. A node of the file never makes room, because other nodes may join
// under many names. If the bound of one address is reached, the same rules hold among the
// connections of that address. Pure.
ConnectionVerdict examine_connection(std::span<const ConnectionFacts> present,
                                     const std::string& address, const ConnectionLimits& limits);

// The connection at `self` has introduced itself as `peer`. Beyond the bound, the connection of
// this peer that has been idle longest makes room. If all of them are replying, the new one is
// refused. Pure.
ConnectionVerdict examine_introduction(std::span<const ConnectionFacts> present, std::size_t self,
                                       const std::string& peer, const ConnectionLimits& limits);

}  // namespace dpwa

namespace dpwa::net {

// Limits the rate of requests on one connection: a request that comes too soon waits. One thread.
class RequestRate {
 public:
  // `per_second` 0: no bound.
  template <typename Executor>
  RequestRate(double per_second, const Executor& executor)
      : bucket_(per_second, std::chrono::steady_clock::now()), pause_(executor) {}

  boost::asio::awaitable<void> wait() {
    const Duration wait = bucket_.take(std::chrono::steady_clock::now());
    if (wait == Duration::zero()) co_return;
    pause_.expires_after(wait);
    co_await pause_.async_wait(as_result);
  }
  void cancel() { pause_.cancel(); }  // a wait under way ends at once

 private:
  TokenBucket bucket_;
  boost::asio::steady_timer pause_;
};

}  // namespace dpwa::net
