#include "test/support/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace dpwa::test {
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
