#include "dpwa/collectives/link_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <utility>

#include "dpwa/net/tls_records.h"

namespace dpwa::collectives {
namespace {

using net::Failure;
using net::IoResult;

// Bytes that are sealed before they leave: they, their records and the kernel's copy stay in the
// second-level cache.
constexpr std::size_t batch_bytes = std::size_t{128} << 10;
constexpr std::size_t most_low_water_bytes = std::size_t{64} << 10;
constexpr std::size_t least_low_water_bytes = std::size_t{8} << 10;
// Of a connection with TLS, which may have so many bytes that poll does not see.
constexpr std::size_t held_by_tls_bytes = std::size_t{512} << 10;

bool is_blocked() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

Failure system_failure() {
  return Failure(boost::system::error_code(errno, boost::system::system_category()));
}

IoResult<std::size_t> send_now(int socket, std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  const ssize_t count = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (is_blocked()) return std::size_t{0};
  return system_failure();
}

}  // namespace

LinkSocket::LinkSocket(net::Stream::Released connection)
    : socket_(std::move(connection.socket)), tls_(std::move(connection.tls)) {}
LinkSocket::LinkSocket(FileDescriptor plain) : socket_(std::move(plain)) {}
LinkSocket::LinkSocket(LinkSocket&&) noexcept = default;
LinkSocket& LinkSocket::operator=(LinkSocket&&) noexcept = default;
LinkSocket::~LinkSocket() = default;

IoResult<std::size_t> LinkSocket::read_some(std::span<const iovec> parts) {
  if (tls_) return read_records(parts);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0) return Failure(Failure::Kind::ended, "the connection was closed");
  if (is_blocked()) return std::size_t{0};
  return system_failure();
}

IoResult<std::size_t> LinkSocket::write_some(std::span<const iovec> parts) {
  return tls_ ? write_records(parts) : send_now(socket_.get(), parts);
}

void LinkSocket::sleep_until(std::size_t bytes) {
  const std::size_t held = tls_ ? held_by_tls_bytes : 0;
  const std::size_t sure = bytes > held ? bytes - held : 0;
  const auto low =
      static_cast<int>(sure < least_low_water_bytes ? 1 : std::min(sure, most_low_water_bytes));
  if (low == low_water_) return;
  low_water_ = low;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVLOWAT, &low_water_, sizeof low_water_);
}

IoResult<std::size_t> LinkSocket::read_records(std::span<const iovec> parts) {
  std::size_t have = 0;
  for (const iovec& part : parts) {
    std::span rest(static_cast<std::byte*>(part.iov_base), part.iov_len);
    while (!rest.empty()) {
      const auto opened = tls_->open(rest);
      // A failure is reported again by the next call.
      if (!opened && have == 0) return opened.error();
      if (!opened || *opened == 0) return have;
      have += *opened;
      rest = rest.subspan(*opened);
    }
  }
  return have;
}

// Whether all that is sealed has left.
IoResult<bool> LinkSocket::flush() {
  std::vector<std::byte>& sealed = tls_->sealed();
  while (sealed_sent_ < sealed.size()) {
    const iovec rest{sealed.data() + sealed_sent_, sealed.size() - sealed_sent_};
    const auto sent = send_now(socket_.get(), std::span(&rest, 1));
    if (!sent) return sent.error();
    if (*sent == 0) return false;
    sealed_sent_ += *sent;
  }
  sealed.clear();
  sealed_sent_ = 0;
  return true;
}

// The caller has the same bytes until their records have left.
IoResult<std::size_t> LinkSocket::write_records(std::span<const iovec> parts) {
  if (sealed_plain_ == 0) {
    for (const iovec& part : parts) {
      const auto bytes = std::min(part.iov_len, batch_bytes - sealed_plain_);
      if (bytes == 0) break;
      if (!tls_->seal(std::span(static_cast<const std::byte*>(part.iov_base), bytes)))
        return Failure(Failure::Kind::ended, "nothing more can be sent");
      sealed_plain_ += bytes;
    }
  }
  const auto flushed = flush();
  if (!flushed) return flushed.error();
  return *flushed ? std::exchange(sealed_plain_, 0) : std::size_t{0};
}

}  // namespace dpwa::collectives
