#include "dpwa/net/same_host/descriptors.h"

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <utility>

namespace dpwa::same_host {
namespace {

constexpr std::size_t max_descriptors = 253;  // of one message: SCM_MAX_FD of the kernel

bool is_unix_socket(int descriptor) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

void drain(int socket) {
  constexpr int most = 4096;  // messages: more than the send buffer of the other end has room for
  std::array<std::byte, 512> dropped;
  for (int i = 0; i < most && receive(socket, dropped, nullptr) > 0; ++i) {
  }
}

}  // namespace

void discard(FileDescriptor descriptor) {
  if (!descriptor.valid()) return;
  const linger at_once{1, 0};
  ::setsockopt(descriptor.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  // What it holds may be Unix sockets again; the kernel allows for four levels. Others may use it
  // still: it is not shut down.
  if (is_unix_socket(descriptor.get())) drain(descriptor.get());
}

void discard_received(int socket) {
  ::shutdown(socket, SHUT_RDWR);
  drain(socket);
}

ssize_t receive(int socket, std::span<std::byte> target, FileDescriptor* kept) {
  iovec room{target.data(), target.size()};
  // Room for all: those beyond it the kernel would close in this thread.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = &room;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) return count;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t sent = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < sent; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
      FileDescriptor descriptor(number);
      if (i == 0 && kept != nullptr) std::swap(*kept, descriptor);
      discard(std::move(descriptor));
    }
  }
  return count;
}

ssize_t send(int socket, std::span<const std::byte> bytes, int descriptor, int flags) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

}  // namespace dpwa::same_host
