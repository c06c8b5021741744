#pragma once

#include <chrono>

#include "dpwa/base/time.h"

// Limits of the connections between the processes of a store: from a worker to a server
// (kvclient::ServerLink), and from a server to another one (kvserver::Link) or to a worker
// (kvserver::StoreHandler).

namespace dpwa::kvstore {

inline constexpr Duration connect_time = std::chrono::seconds(2);  // TCP, TLS and HELLO
// Between two attempts to connect: first this long, then twice as long each time.
inline constexpr Duration first_pause = std::chrono::milliseconds(50);
inline constexpr Duration longest_pause = std::chrono::seconds(1);
// For one frame. A worker gives up sooner than a server: it keeps its requests and sends them again
// over the next connection, while messages that wait in a server are lost with the connection.
inline constexpr Duration write_time_of_worker = std::chrono::seconds(10);
inline constexpr Duration write_time_of_server = std::chrono::seconds(30);
// A worker connects again to a server that sends nothing for so long, and nothing either when it
// was asked for its epoch after a third of that time.
inline constexpr Duration longest_silence = std::chrono::seconds(15);

}  // namespace dpwa::kvstore
