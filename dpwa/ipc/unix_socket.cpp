#include "dpwa/ipc/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/processors.h"

namespace dpwa::ipc {
namespace {

constexpr std::size_t most_descriptors = 253;  // of one message: SCM_MAX_FD of the kernel

struct Address {
  explicit Address(const std::string& name) {
    value.sun_family = AF_UNIX;
    name.copy(value.sun_path + 1, sizeof value.sun_path - 1);  // after a 0: abstract
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&value); }

  sockaddr_un value{};
  socklen_t bytes = 0;
};

FileDescriptor new_socket(int flags) {
  return FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

error_code last_error() {
  return {errno, boost::system::system_category()};
}

// recvmsg() that does not wait. `control` has room for the descriptors that may come.
ssize_t receive(int socket, std::span<std::byte> target, std::span<char> control, msghdr& message) {
  iovec room{target.data(), target.size()};
  message = {};
  message.msg_iov = &room;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  return ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

// Calls `take` for each descriptor of a message.
template <typename Take>
void each_descriptor(msghdr& message, Take take) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
      take(FileDescriptor(number));
    }
  }
}

// Sockets within sockets that are emptied. The kernel allows for four levels, but does not count
// connections that wait at a listening socket.
constexpr int most_levels = 8;

void discard(FileDescriptor descriptor, int levels);

// Throws away what has come, and what the sockets in it hold down to `levels` below.
void drain(int socket, int levels) {
  constexpr int most = 4096;  // messages: more than the send buffer of the other end has room for
  std::array<std::byte, 512> dropped;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control;
  msghdr message{};
  for (int i = 0; i < most && receive(socket, dropped, control, message) > 0; ++i)
    each_descriptor(message, [levels](FileDescriptor came) { discard(std::move(came), levels); });
}

bool is_unix_socket(int descriptor) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

// Throws away the connections that wait at a listening socket. Fails at once on any other socket.
void drop_waiting(int listener, int levels) {
  ::shutdown(listener, SHUT_RDWR);  // no more can come, and accept4() does not wait
  for (int i = 0; i < SOMAXCONN; ++i) {
    const FileDescriptor waiting(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!waiting.valid()) return;
    ::shutdown(waiting.get(), SHUT_RDWR);
    drain(waiting.get(), levels);
  }
}

// Closes a descriptor that another user has sent, without waiting for it.
void discard(FileDescriptor descriptor, int levels) {
  const linger at_once{1, 0};
  ::setsockopt(descriptor.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  if (levels == 0 || !is_unix_socket(descriptor.get())) return;
  drop_waiting(descriptor.get(), levels - 1);
  drain(descriptor.get(), levels - 1);
}

namespace error = boost::asio::error;

void wait(int socket, short events) {
  pollfd look{socket, events, 0};
  ::poll(&look, 1, static_cast<int>(look_every.count()));
}

}  // namespace

FileDescriptor listen_at(const std::string& name) {
  FileDescriptor listener = new_socket(0);
  const Address address(name);
  if (listener.valid() && ::bind(listener.get(), address.generic(), address.bytes) == 0 &&
      ::listen(listener.get(), SOMAXCONN) == 0)
    return listener;
  throw std::system_error(errno, std::system_category());
}

boost::system::result<FileDescriptor, std::string> connect_to(const std::string& name) {
  FileDescriptor socket = new_socket(SOCK_NONBLOCK);  // with a full backlog it fails
  const Address address(name);
  if (!socket.valid() || ::connect(socket.get(), address.generic(), address.bytes) != 0)
    return "cannot connect: " + last_error().message();
  if (!admits(socket.get())) return std::string("belongs to another user");
  return socket;
}

FileDescriptor accept_from(int listener) {
  FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.valid() && !admits(socket.get())) return {};
  return socket;
}

bool admits(int socket) {
  if (is_same_user(socket)) return true;
  shut_out(socket);
  return false;
}

void shut_out(int socket) {
  ::shutdown(socket, SHUT_RDWR);
  drain(socket, most_levels);
}

void stop_listening(int listener) {
  drop_waiting(listener, most_levels);
}

error_code Read::step(int socket) {
  while (bytes_ < at_least_) {
    alignas(cmsghdr) std::array<char, CMSG_LEN(sizeof(int))> control;
    msghdr message{};
    const std::span<char> room = kept_ != nullptr ? std::span<char>(control) : std::span<char>();
    const ssize_t count = receive(socket, target_.subspan(bytes_), room, message);
    if (count == 0) return boost::asio::error::eof;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return last_error();
    bytes_ += static_cast<std::size_t>(count);
    each_descriptor(message, [this](FileDescriptor came) { *kept_ = std::move(came); });
  }
  return {};
}

error_code Write::step(int socket) {
  while (!rest_.empty()) {
    iovec part{const_cast<std::byte*>(rest_.data()), rest_.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor_ >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof descriptor_);
      std::memcpy(CMSG_DATA(header), &descriptor_, sizeof descriptor_);
    }
    const ssize_t count = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return last_error();
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    descriptor_ = -1;
  }
  return {};
}

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

void expect_soon(int socket, std::chrono::microseconds patience) {
  static const bool alone = processor_count() < 2;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!alone && !is_readable(socket) && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
}

}  // namespace dpwa::ipc
