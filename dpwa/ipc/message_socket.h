#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dpwa/ipc/unix_socket.h"

namespace dpwa::ipc {

// How often a waiting call asks whether to go on.
inline constexpr auto look_every = std::chrono::milliseconds(200);

// The blocking side of a connection: messages of a u32 length in the host's byte order and that
// many bytes, and a descriptor beside them. Either end may be killed or stopped at any moment, in
// the middle of a message too: what fails closes the socket, nothing throws. One thread.
class MessageSocket {
 public:
  // A longer message is not sent. An announced length beyond it means that the other end speaks
  // another protocol.
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  MessageSocket() = default;
  explicit MessageSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  bool is_open() const { return socket_.valid(); }
  int descriptor() const { return socket_.get(); }
  void close() { socket_ = {}; }

  // False, and closed, when the other end is gone. Waits while it takes nothing.
  bool send(std::string_view message, int descriptor = -1);
  // The next message; `kept`: as Read's. None, and closed: the other end is gone, or `give_up` said
  // so, which is asked every `look_every`.
  std::optional<std::string> receive(FileDescriptor* kept = nullptr,
                                     const std::function<bool()>& give_up = nullptr);

 private:
  bool read(std::span<std::byte> target, FileDescriptor* kept,
            const std::function<bool()>& give_up);

  FileDescriptor socket_;
};

// Waits until one of `sockets` can be read, a signal comes or `patience` is over.
void wait_for_any(const std::vector<int>& sockets, std::chrono::milliseconds patience);
bool is_readable(int socket);

}  // namespace dpwa::ipc
