#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/wire/frame.h"

namespace dpwa::test {

struct RawFrame {
  wire::FrameHeader header;
  std::vector<std::byte> body;
};

// A blocking TCP connection over loopback that sends whatever bytes it is told to, as a hostile or
// broken program would. No call waits longer than `patience` of eventually.h. Movable; one thread.
class RawSocket {
 public:
  // Connects. `receive_buffer`: bytes that the kernel holds for a reader that does not read; 0 =
  // the system's choice. `from`: the own address, such as 127.0.0.2. Throws std::runtime_error.
  explicit RawSocket(std::uint16_t port, int receive_buffer = 0, const char* from = nullptr);
  // Takes over a connected descriptor.
  struct Adopt {
    int descriptor;
  };
  explicit RawSocket(Adopt adopt);
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&&) = delete;

  bool send(std::span<const std::byte> bytes);  // false: the connection is broken
  bool send(std::string_view text);
  // Exactly so many bytes; none when the connection ends before.
  std::optional<std::vector<std::byte>> read(std::size_t count);
  // A whole frame of any type; none when the connection ends before, or the header is no header.
  std::optional<RawFrame> read_frame();
  // Reads and drops until the other side ends the connection; false when it does not.
  bool ended_by_other_side();
  // Whether the other side has ended the connection or sent something within `limit`.
  bool stirs_within(std::chrono::milliseconds limit) const;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// Unix sockets of the abstract namespace, to be used as RawSocket is. Throw std::runtime_error.
RawSocket connect_unix(const std::string& name);
int listen_unix(const std::string& name);  // a listening descriptor

// Bytes with descriptors beside them.
bool send_descriptors(RawSocket& socket, std::span<const std::byte> bytes,
                      std::span<const int> descriptors);
// Reads once, at most 4096 bytes; `descriptor` is the one that came along, if one did.
std::vector<std::byte> receive_descriptor(RawSocket& socket, FileDescriptor& descriptor);

}  // namespace dpwa::test
