#include "dpwa/attach/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/base/credentials.h"
#include "dpwa/net/same_host/descriptors.h"

namespace dpwa::attach {
namespace {

sockaddr_un address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // abstract: begins with a zero
  return address;
}

socklen_t length_of(const std::string& name) {
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

FileDescriptor new_socket() {
  return FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

}  // namespace

bool Channel::send(std::string_view message, int descriptor) {
  if (!is_open() || message.size() > max_bytes) return false;
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes += message;
  for (auto left = std::as_bytes(std::span(bytes)); !left.empty();) {
    const ssize_t count = same_host::send(socket_.get(), left, descriptor, /*flags=*/0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      close();
      return false;
    }
    left = left.subspan(static_cast<std::size_t>(count));
    descriptor = -1;  // it went with the first byte
  }
  return true;
}

bool Channel::receive_all(char* target, std::size_t bytes, FileDescriptor* descriptor,
                          const std::function<bool()>& give_up) {
  for (std::size_t have = 0; have < bytes;) {
    const auto room = std::as_writable_bytes(std::span(target + have, bytes - have));
    const ssize_t count = same_host::receive(socket_.get(), room, descriptor);
    if (count > 0) {
      have += static_cast<std::size_t>(count);
      continue;
    }
    if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
    wait_for_any({socket_.get()}, look_every);
    if (give_up && give_up()) return false;
  }
  return true;
}

std::optional<std::string> Channel::receive(FileDescriptor* descriptor,
                                            const std::function<bool()>& give_up) {
  if (!is_open()) return std::nullopt;
  std::uint32_t size = 0;
  std::string message;
  bool whole = receive_all(reinterpret_cast<char*>(&size), sizeof size, descriptor, give_up) &&
               size <= max_bytes;
  // The memory grows with what has come, not with what is announced.
  constexpr std::size_t piece = std::size_t{1} << 20;
  while (whole && message.size() < size) {
    const std::size_t from = message.size();
    message.resize(std::min<std::size_t>(size, from + piece));
    whole = receive_all(message.data() + from, message.size() - from, descriptor, give_up);
  }
  if (whole) return message;
  close();
  return std::nullopt;
}

std::string socket_name(const std::string& cluster, const std::string& node, std::uint16_t port) {
  const std::string whole = cluster + '\0' + node;
  char text[64];
  std::snprintf(text, sizeof text, "dpwa-node-%u-%u-%08x", static_cast<unsigned>(::geteuid()),
                unsigned{port}, crc32c(std::as_bytes(std::span(whole))));
  return text;
}

FileDescriptor listen_at(const std::string& name) {
  FileDescriptor listener = new_socket();
  const sockaddr_un address = address_of(name);
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  if (listener.valid() && ::bind(listener.get(), where, length_of(name)) == 0 &&
      ::listen(listener.get(), 16) == 0)
    return listener;
  throw std::runtime_error(errno == EADDRINUSE
                               ? std::string("a node process of that name runs already")
                               : std::system_category().message(errno));
}

Channel connect_to(const std::string& name) {
  FileDescriptor socket = new_socket();
  const sockaddr_un address = address_of(name);
  const bool connected =
      socket.valid() &&
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length_of(name)) == 0 &&
      is_same_user(socket.get());
  return connected ? Channel(std::move(socket)) : Channel();
}

Channel accept_from(int listener) {
  FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid() || !is_same_user(socket.get())) return {};
  return Channel(std::move(socket));
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

}  // namespace dpwa::attach
