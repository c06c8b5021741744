#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/rules/options.h"

namespace dpwa {

// What is known of one inbound connection.
struct ConnectionFacts {
  enum class Phase { handshake, idle, replying, closing };  // closing: counts no more
  std::string address;  // the network that it comes from (network.h)
  std::string peer;     // the account of Caller; empty during the handshake
  Phase phase = Phase::handshake;
  TimePoint since{};  // when the phase began
  // A node of the cluster file, or one that this node joined by, that calls from where it is listed
  // or shows its certificate.
  bool of_file = false;
};

// The answer to a new connection: it is taken, perhaps in the place of an older one, or not.
struct ConnectionVerdict {
  bool admitted = true;
  std::optional<std::size_t> closes;  // index of the connection that makes room
  std::string reason;                 // why it is not taken or what had to make room
};

// A new connection from `address`. Where a bound is reached, the handshake that has waited longest
// makes room, of the addresses that have most of them: a flood of silent connections displaces
// itself, for an honest handshake takes a few round trips. Where nobody shakes hands, the
// connection that has been idle longest makes room, of those that are not of the file: whoever may
// join may do so under many names. A node of the file never makes room. Where the bound of one
// address is reached, the same among those of that address. Pure.
ConnectionVerdict examine_connection(std::span<const ConnectionFacts> present,
                                     const std::string& address, const ConnectionLimits& limits);

// The connection at `self` has introduced itself as `peer`. Beyond the bound the peer's own
// connection that has been idle longest makes room; all replying: it is not taken. Pure.
ConnectionVerdict examine_introduction(std::span<const ConnectionFacts> present, std::size_t self,
                                       const std::string& peer, const ConnectionLimits& limits);

}  // namespace dpwa
