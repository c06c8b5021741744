#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "bench/raw/raw_socket.h"

namespace dpwa::bench {

// Bytes of a request: as many as a PULL of dpwa takes, header included.
inline constexpr std::size_t raw_request_bytes = 72;

// Answers every request on every connection with the same bytes, a thread a connection.
class RawServer {
 public:
  // `answer` outlives the server.
  RawServer(std::uint16_t port, std::span<const std::byte> answer);
  ~RawServer();

 private:
  void accept_connections();
  void serve(const RawSocket& connection) const;

  const std::span<const std::byte> answer_;
  const RawSocket listener_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;  // guarded by mutex_
  // Guarded by mutex_. Kept to the end, so that no descriptor of theirs becomes another's.
  std::vector<std::shared_ptr<const RawSocket>> connections_;
  std::thread accepting_;
};

}  // namespace dpwa::bench
