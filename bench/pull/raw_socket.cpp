#include "bench/pull/raw_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <string_view>
#include <thread>
#include <utility>

#include "bench/system_call.h"
#include "dpwa/base/checksum.h"

namespace dpwa::bench {
namespace {

constexpr std::size_t bytes_per_send = std::size_t{1} << 20;
constexpr std::string_view congestion_control = "reno";

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int open_socket() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) fail("cannot open a socket");
  return descriptor;
}

void tune(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, congestion_control.data(),
               congestion_control.size());
}

}  // namespace

RawSocket::~RawSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RawSocket RawSocket::listen_on(std::uint16_t port) {
  RawSocket listener(open_socket());
  const int on = 1;
  ::setsockopt(listener.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = loopback(port);
  if (::bind(listener.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
          0 ||
      ::listen(listener.descriptor_, 64) != 0) {
    fail("cannot listen on loopback");
  }
  return listener;
}

RawSocket RawSocket::connect_to(std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    RawSocket socket(open_socket());
    if (::connect(socket.descriptor_, reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) == 0) {
      tune(socket.descriptor_);
      return socket;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fail("cannot connect over loopback");
}

RawSocket RawSocket::accept() const {
  int descriptor = -1;
  do {
    descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor >= 0) tune(descriptor);
  return RawSocket(descriptor);
}

void RawSocket::shut_down() const {
  ::shutdown(descriptor_, SHUT_RDWR);
}

bool RawSocket::send_all(std::span<const std::byte> bytes, int flags) const {
  while (!bytes.empty()) {
    const auto piece = std::min(bytes.size(), bytes_per_send);
    const auto sent = ::send(descriptor_, bytes.data(), piece, MSG_NOSIGNAL | flags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

std::size_t RawSocket::receive_some(std::span<std::byte> bytes) const {
  ssize_t count = 0;
  do {
    count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  } while (count < 0 && errno == EINTR);
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

bool RawSocket::receive_all(std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::size_t count = receive_some(bytes);
    if (count == 0) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

RawServer::RawServer(std::uint16_t port, const std::vector<AlignedBuffer>& answers, bool checked)
    : answers_(answers),
      checked_(checked),
      listener_(RawSocket::listen_on(port)),
      accepting_([this] { accept_connections(); }) {}

RawServer::~RawServer() {
  listener_.shut_down();
  accepting_.join();
}

void RawServer::accept_connections() {
  // Kept to the end, so that no descriptor of theirs becomes another's.
  std::list<RawSocket> connections;
  std::vector<std::thread> threads;
  while (connections.emplace_back(listener_.accept()).valid())
    threads.emplace_back([this, &connection = connections.back()] { serve(connection); });
  for (const RawSocket& connection : connections) connection.shut_down();
  for (std::thread& thread : threads) thread.join();
}

void RawServer::serve(const RawSocket& connection) {
  std::array<std::byte, raw_request_bytes> request;
  while (connection.receive_all(request)) {
    const auto answer = answers_[next_++ % answers_.size()].bytes();
    const bool sent = checked_ ? send_checked(connection, answer) : connection.send_all(answer);
    if (!sent) return;
  }
}

bool RawServer::send_checked(const RawSocket& connection, std::span<const std::byte> answer) const {
  while (!answer.empty()) {
    const auto chunk = answer.first(std::min(answer.size(), raw_chunk_bytes));
    const std::uint32_t checksum = crc32c(chunk);
    if (!connection.send_all(std::as_bytes(std::span(&checksum, 1)), MSG_MORE)) return false;
    if (!connection.send_all(chunk)) return false;
    answer = answer.subspan(chunk.size());
  }
  return true;
}

}  // namespace dpwa::bench
