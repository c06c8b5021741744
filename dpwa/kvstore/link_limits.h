#pragma once

#include <chrono>
#include <cstddef>

#include "dpwa/base/backoff.h"
#include "dpwa/base/time.h"

// Limits of the connections between the processes of a store: to a server, from a worker or from
// another server (net::StoreLink), and back from a server to a worker (kvserver::StoreHandler).

namespace dpwa::kvstore {

inline constexpr Duration connect_time = std::chrono::seconds(2);  // TCP, TLS and HELLO
// Between two attempts to connect: 25 to 50 ms first.
inline constexpr Duration longest_pause = std::chrono::seconds(1);
inline constexpr Backoff between_connects{std::chrono::microseconds(37500), longest_pause * 3 / 4,
                                          1. / 3};
// For one frame, beside the time that its bytes take over the slowest line. A worker gives up
// sooner than a server: it keeps its requests and sends them again over the next connection, while
// messages that wait in a server are lost with the connection.
inline constexpr Duration write_time_of_worker = std::chrono::seconds(10);
inline constexpr Duration write_time_of_server = std::chrono::seconds(30);
inline constexpr std::size_t slowest_bytes_per_second = std::size_t{32} << 10;
constexpr Duration time_to_write(Duration at_least, std::size_t bytes) {
  return at_least + std::chrono::seconds(bytes / slowest_bytes_per_second);
}
// A worker connects again to a server that sends nothing for so long, and nothing either when it
// was asked for its epoch after a third of that time. While a message is half way, the bytes of it
// that still move count as well: those received of a reply, those acknowledged of a push.
inline constexpr Duration longest_silence = std::chrono::seconds(15);

}  // namespace dpwa::kvstore
