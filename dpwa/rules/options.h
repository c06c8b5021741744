#pragma once

#include <cstddef>
#include <cstdint>

#include "dpwa/base/time.h"

// Options that a cluster file sets and a component takes as they are, with their defaults. The
// sections of Config hold these structs, so nothing is copied field by field.

namespace dpwa {

struct StalenessOptions {
  double max_staleness = 0;  // clock gap; 0 = no bound
};

struct PullOptions {
  double pull_probability = 1.0;                      // of beginning a pull at a step, [0, 1]
  Duration timeout = std::chrono::milliseconds(500);  // whole pull: connect, request, reply; > 0
};

// The most parts that a model is cut into where a pull brings one of them (gossip.blocks).
inline constexpr std::size_t max_blocks = 64;

struct MembershipOptions {
  bool open = true;            // nodes that the file does not list may join
  unsigned suspect_after = 3;  // pulls in a row without an answer
  // From suspect to dead, among up to ten nodes; log10(n) times as long among more.
  Duration suspect = std::chrono::seconds(5);
  Duration forget = std::chrono::hours(1);      // one that joined and is dead or has left
  Duration exchange = std::chrono::seconds(1);  // with a peer that there is no news for
  std::size_t max_members = 4096;               // listed ones included, the own node not
};

// How many inbound connections a node keeps at once. Every bound is at least 1.
struct ConnectionLimits {
  std::uint32_t in_all = 256;
  std::uint32_t per_address = 128;
  std::uint32_t per_peer = 4;     // by name and network, or by certificate
  std::uint32_t handshakes = 64;  // not yet introduced
};

// Options of connections in either direction.
struct SocketOptions {
  bool same_host = true;  // peers of this host read each other's memory where they can
};

// Options of the side that answers.
struct ServingOptions : SocketOptions {
  ConnectionLimits connections;                   // inbound, at once
  std::uint32_t max_requests_per_second = 10000;  // on one connection; beyond waits. 0 = no bound
  std::uint32_t max_replies = 64;                 // snapshots being sent at once; above: BUSY
};

// The parts of a reply.
struct ChunkOptions {
  std::uint32_t chunk_bytes = 512 * 1024;  // a unit with a checksum of its own
};

struct StartOptions {
  Duration start_wait = std::chrono::seconds(10);  // longest wait for other nodes, from start() on
  std::uint32_t min_nodes = 1;                     // that must run, this one included
};

// The form in which floating-point gradients travel. fp16 and bf16: half the bytes of float32; sums
// are computed in float32.
enum class GradientCompression { none, fp16, bf16 };

// Options of gradients that are averaged while the backward pass still runs.
struct GradientOptions {
  // Size of a bucket of gradients; 0 = one for each parameter. The first one is smaller.
  std::uint64_t bucket_bytes = std::uint64_t{25} << 20;
  GradientCompression compression = GradientCompression::none;
  // Shared buffers such as BatchNorm statistics are averaged; false: taken from one member.
  bool average_buffers = false;
};

// The treatment of a peer's parameters that are much further away than usual.
enum class DistancePolicy {
  off,     // blended
  warn,    // blended, counted and logged
  clip,    // blended as if they lay at the bound, in the same direction
  refuse,  // not blended; the round asks another peer
};

struct FirewallOptions {
  DistancePolicy distance = DistancePolicy::clip;
};

}  // namespace dpwa
