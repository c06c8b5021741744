#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::bench {

// A blocking loopback TCP socket as bare as it goes: no Nagle delay, congestion control reno,
// buffers sized by the kernel. Movable.
class RawSocket {
 public:
  RawSocket() = default;
  explicit RawSocket(int descriptor) : descriptor_(descriptor) {}
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  RawSocket& operator=(RawSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  // Throw std::system_error.
  static RawSocket listen_on(std::uint16_t port);
  static RawSocket connect_to(std::uint16_t port);  // tries for some seconds

  RawSocket accept() const;  // not valid once shut down
  bool valid() const { return descriptor_ >= 0; }
  void shut_down() const;  // every call in progress returns

  // False when the connection has ended. MSG_MORE in `flags`: it leaves with what follows.
  bool send_all(std::span<const std::byte> bytes, int flags = 0) const;
  bool receive_all(std::span<std::byte> bytes) const;
  std::size_t receive_some(std::span<std::byte> bytes) const;  // 0 = ended

 private:
  int descriptor_ = -1;
};

// Bytes of a request: as many as a PULL of dpwa takes, header included.
inline constexpr std::size_t raw_request_bytes = 72;

// Chunks that a checked answer is sent in, each behind its CRC32C.
inline constexpr std::size_t raw_chunk_bytes = std::size_t{512} << 10;

// Answers every request on every connection, a thread a connection.
class RawServer {
 public:
  // With the bytes of `answers`, in turn, which outlive the server. `checked`: in chunks with a
  // checksum that is computed for each answer.
  RawServer(std::uint16_t port, const std::vector<AlignedBuffer>& answers, bool checked);
  ~RawServer();

 private:
  void accept_connections();
  void serve(const RawSocket& connection);
  bool send_checked(const RawSocket& connection, std::span<const std::byte> answer) const;

  const std::vector<AlignedBuffer>& answers_;
  const bool checked_;
  std::atomic<std::size_t> next_ = 0;
  const RawSocket listener_;
  std::thread accepting_;
};

}  // namespace dpwa::bench
