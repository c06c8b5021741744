#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/wire/frame.h"

namespace dpwa::net {

// Whole frames over a stream socket. Nothing here throws; a failed stream may hold half a frame and
// is to be closed.

// Why a frame could not be read or written.
struct IoFailure {
  IoFailure() = default;
  IoFailure(bool is_protocol, bool is_version_mismatch, std::string what)
      : protocol(is_protocol), version_mismatch(is_version_mismatch), detail(std::move(what)) {}

  bool protocol =
      false;  // bytes arrived that are no valid frame; otherwise the stream broke or ended
  bool version_mismatch = false;  // a frame of another protocol version
  std::string detail;
};
template <typename T>
using IoResult = boost::system::result<T, IoFailure>;

struct Frame {
  wire::FrameHeader header;
  std::vector<std::byte> body;
};

// A set of message types.
using TypeSet = std::uint64_t;
template <typename... Types>
constexpr TypeSet types(Types... type) {
  return ((TypeSet{1} << static_cast<unsigned>(type)) | ...);
}

// Reads one frame of the expected types, which exclude SNAPSHOT. Any other type is a protocol
// failure, found before its body is allocated.
boost::asio::awaitable<IoResult<Frame>> read_frame(boost::asio::ip::tcp::socket& socket,
                                                   TypeSet expected);

// Both move as much per system call as the kernel takes (Asio's default is 64 KiB).
boost::asio::awaitable<boost::system::error_code> write_all(boost::asio::ip::tcp::socket& socket,
                                                            std::span<const std::byte> bytes);
// Reads at least `at_least` bytes into `target` and returns how many came.
boost::asio::awaitable<IoResult<std::size_t>> read_some(boost::asio::ip::tcp::socket& socket,
                                                        std::span<std::byte> target,
                                                        std::size_t at_least);

// Bytes per system call.
inline constexpr std::size_t max_transfer_bytes = std::size_t{4} << 20;

}  // namespace dpwa::net
