#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dpwa/net/frame_io.h"
#include "dpwa/wire/kv_messages.h"

namespace dpwa::net {

// Where the payload of a message of the store, `bytes` long, is to be read to; empty: into the
// frame. Asked once its head is there, which is not checked yet.
using PayloadTarget = std::function<std::span<std::byte>(
    wire::MessageType type, std::span<const std::byte> head, std::uint64_t bytes)>;

// As read_frame(). The target is written to until the frame is read, or the stream is closed.
boost::asio::awaitable<IoResult<Frame>> read_frame(ByteSource& stream,
                                                   std::span<const wire::TypeBound> expected,
                                                   const PayloadTarget& target);

inline std::vector<boost::asio::const_buffer> buffers_of(const wire::KvFrames& frames) {
  std::vector<boost::asio::const_buffer> buffers;
  for (const auto& part : frames.parts()) buffers.emplace_back(part.data(), part.size());
  return buffers;
}

}  // namespace dpwa::net
