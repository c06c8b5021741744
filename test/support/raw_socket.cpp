#include "test/support/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "test/support/eventually.h"

namespace dpwa::test {
namespace {

void limit_waiting(int descriptor) {
  const timeval limit{patience.count(), 0};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

}  // namespace

RawSocket::RawSocket(std::uint16_t port, int receive_buffer, const char* from)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer > 0) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  limit_waiting(descriptor_);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (from != nullptr) {
    ::inet_pton(AF_INET, from, &address.sin_addr);
    if (::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(descriptor_);
      throw std::runtime_error(std::string("cannot call from ") + from);
    }
  }
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const std::string why = std::strerror(errno);
    ::close(descriptor_);
    throw std::runtime_error("cannot connect to port " + std::to_string(port) + ": " + why);
  }
}

RawSocket::RawSocket(Adopt adopt) : descriptor_(adopt.descriptor) {
  limit_waiting(descriptor_);
}

RawSocket::~RawSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RawSocket::RawSocket(RawSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

bool RawSocket::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawSocket::send(std::string_view text) {
  return send(std::as_bytes(std::span(text)));
}

std::optional<std::vector<std::byte>> RawSocket::read(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t have = 0; have < count;) {
    const auto got = ::recv(descriptor_, bytes.data() + have, count - have, 0);
    // A socket with a limit on waiting is interrupted where a process is stopped and continued.
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    have += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::optional<RawFrame> RawSocket::read_frame() {
  const auto bytes = read(wire::header_bytes);
  if (!bytes) return std::nullopt;
  const auto header =
      wire::decode_header(std::span(*bytes).first<wire::header_bytes>(), std::uint64_t{1} << 48);
  if (!header) return std::nullopt;
  auto body = read(header->body_bytes);
  if (!body) return std::nullopt;
  return RawFrame{*header, std::move(*body)};
}

bool RawSocket::ended_by_other_side() {
  std::array<std::byte, 65536> dropped;
  while (true) {
    const auto got = ::recv(descriptor_, dropped.data(), dropped.size(), 0);
    if (got == 0) return true;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
  }
}

bool RawSocket::stirs_within(std::chrono::milliseconds limit) const {
  pollfd watched{descriptor_, POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(limit.count())) != 0;
}

namespace {

struct Address {
  explicit Address(const std::string& name) {
    value.sun_family = AF_UNIX;
    name.copy(value.sun_path + 1, sizeof value.sun_path - 1);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&value); }

  sockaddr_un value{};
  socklen_t size = 0;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace

RawSocket connect_unix(const std::string& name) {
  const Address address(name);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), address.generic(), address.size) != 0)
    fail("cannot connect to @" + name);
  return RawSocket(RawSocket::Adopt{socket.release()});
}

int listen_unix(const std::string& name) {
  const Address address(name);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), address.generic(), address.size) != 0 || ::listen(socket.get(), 16) != 0)
    fail("cannot listen at @" + name);
  return socket.release();
}

bool send_descriptors(RawSocket& socket, std::span<const std::byte> bytes,
                      std::span<const int> descriptors) {
  iovec content{const_cast<std::byte*>(bytes.data()), bytes.size()};
  std::vector<char> control(CMSG_SPACE(descriptors.size_bytes()));
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  if (!descriptors.empty())
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  return ::sendmsg(socket.descriptor(), &message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

std::vector<std::byte> receive_descriptor(RawSocket& socket, FileDescriptor& descriptor) {
  std::vector<std::byte> bytes(4096);
  iovec room{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &room;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto count = ::recvmsg(socket.descriptor(), &message, MSG_CMSG_CLOEXEC);
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  const cmsghdr* header = count > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    descriptor = FileDescriptor(received);
  }
  return bytes;
}

}  // namespace dpwa::test
