#pragma once

#include <atomic>
#include <cstdint>

namespace dpwa {

// Counters of a node's network side since its start. Written by the network threads, read by
// anyone.
struct Traffic {
  using Counter = std::atomic<std::uint64_t>;
  Counter connections_accepted{0};
  Counter connections_refused{0};  // over the limit, or a handshake that failed
  Counter protocol_errors{0};      // corrupt frames, bad lengths, wrong magic, in either direction
  // Handshakes in which one end did not accept the other's proof of identity: no TLS, another key,
  // or an invalid certificate; in either direction.
  Counter security_failures{0};
  Counter snapshots_served{0};
  Counter bytes_served{0};
  Counter bytes_received{0};
  Counter pulls_begun{0};
  // As the trainer counts them, one for each pull however many peers it asked: the same numbers as
  // in the step report. Written by the trainer's thread.
  Counter pulls_ok{0};
  Counter pulls_failed{0};
  // Of the above, as memory handed over on one host:
  Counter same_host_pulls{0};   // snapshots received
  Counter same_host_served{0};  // snapshots read by peers
  // Readers that kept a snapshot longer than allowed; its buffer was then taken back.
  Counter same_host_leases_expired{0};
  // Own reads thrown away because the peer had taken the buffer back meanwhile.
  Counter same_host_reads_discarded{0};
};

}  // namespace dpwa
