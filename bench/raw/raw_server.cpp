#include "bench/raw/raw_server.h"

#include <array>

namespace dpwa::bench {

RawServer::RawServer(std::uint16_t port, std::span<const std::byte> answer)
    : answer_(answer),
      listener_(RawSocket::listen_on(port)),
      accepting_([this] { accept_connections(); }) {}

RawServer::~RawServer() {
  listener_.shut_down();
  accepting_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& connection : connections_) connection->shut_down();
  }
  for (std::thread& thread : threads_) thread.join();
}

void RawServer::accept_connections() {
  while (true) {
    const auto connection = std::make_shared<const RawSocket>(listener_.accept());
    if (!connection->valid()) return;
    const std::lock_guard lock(mutex_);
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { serve(*connection); });
  }
}

void RawServer::serve(const RawSocket& connection) const {
  std::array<std::byte, raw_request_bytes> request;
  while (connection.receive_all(request)) {
    if (!connection.send_all(answer_)) return;
  }
}

}  // namespace dpwa::bench
