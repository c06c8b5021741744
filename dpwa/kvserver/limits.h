#pragma once

#include <cstddef>

namespace dpwa::kvserver {

// What a server keeps in memory for its connections. Their limits in time: kvstore/link_limits.h.

// The most bytes of values that wait to be written to one process; beyond it the connection is
// closed.
inline constexpr std::size_t most_queued_for_worker = std::size_t{256} << 20;
inline constexpr std::size_t most_queued_for_server = std::size_t{1} << 30;
// Values that a worker of this host reads where they are, and has not said to have read. Beyond
// that they are sent. It has as long to read them as for a frame (write_time_of_server), for it
// says so before each of its beats.
inline constexpr std::size_t most_lent_to_worker = most_queued_for_worker;

}  // namespace dpwa::kvserver
