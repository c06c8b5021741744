#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "dpwa/net/stream.h"
#include "dpwa/snapshot/reused_memory.h"
#include "dpwa/wire/frame.h"

namespace dpwa::net {

// Whole frames over a stream. Nothing here throws; a failed stream may hold half a frame and must
// be closed.

struct Frame {
  wire::FrameHeader header;
  // For a message of the store only its head: the payload follows in memory of its own.
  std::vector<std::byte> body;
  ReusedBytes payload;
};

using wire::TypeSet;
template <typename... Types>
constexpr TypeSet types(Types... type) {
  return TypeSet(type...);
}

// Reads one frame of the expected types, which exclude SNAPSHOT. Any other type is a protocol
// failure, found before its body is allocated; so is a body of more than `most_bytes`.
boost::asio::awaitable<IoResult<Frame>> read_frame(
    ByteSource& stream, TypeSet expected,
    std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max());

// Reads one frame of the types in `expected`, each with its bound, also of types that this version
// of the protocol does not have. `expected` outlives the call.
boost::asio::awaitable<IoResult<Frame>> read_frame(ByteSource& stream,
                                                   std::span<const wire::TypeBound> expected);

}  // namespace dpwa::net
