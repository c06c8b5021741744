#include "dpwa/ipc/message_socket.h"

#include <poll.h>

#include <boost/asio/error.hpp>
#include <cstdint>
#include <cstring>
#include <span>

namespace dpwa::ipc {
namespace {

namespace error = boost::asio::error;

void wait(int socket, short events) {
  pollfd look{socket, events, 0};
  ::poll(&look, 1, static_cast<int>(look_every.count()));
}

}  // namespace

bool MessageSocket::send(std::string_view message, int descriptor) {
  if (!is_open() || message.size() > max_bytes) return false;
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes += message;
  Write write(std::as_bytes(std::span(bytes)), descriptor);
  error_code failure = write.step(socket_.get());
  while (failure == error::would_block) {
    wait(socket_.get(), POLLOUT);
    failure = write.step(socket_.get());
  }
  if (failure) close();
  return !failure;
}

bool MessageSocket::read(std::span<std::byte> target, FileDescriptor* kept,
                         const std::function<bool()>& give_up) {
  Read read(target, target.size(), kept);
  error_code failure = read.step(socket_.get());
  while (failure == error::would_block) {
    wait(socket_.get(), POLLIN);
    if (give_up && give_up()) return false;
    failure = read.step(socket_.get());
  }
  return !failure;
}

std::optional<std::string> MessageSocket::receive(FileDescriptor* kept,
                                                  const std::function<bool()>& give_up) {
  if (!is_open()) return std::nullopt;
  std::uint32_t size = 0;
  if (read(std::as_writable_bytes(std::span(&size, 1)), kept, give_up) && size <= max_bytes) {
    std::string message(size, '\0');
    if (read(std::as_writable_bytes(std::span(message)), kept, give_up)) return message;
  }
  close();
  return std::nullopt;
}

void wait_for_any(const std::vector<int>& sockets, std::chrono::milliseconds patience) {
  std::vector<pollfd> waits;
  for (const int socket : sockets) waits.push_back({socket, POLLIN, 0});
  ::poll(waits.data(), waits.size(), static_cast<int>(patience.count()));
}

bool is_readable(int socket) {
  pollfd look{socket, POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

}  // namespace dpwa::ipc
