#pragma once

#include <cstddef>
#include <cstdint>

#include "dpwa/base/time.h"

namespace dpwa::net {

// What the kernel says of a connected TCP socket: how far the bytes are that it was given whole.
// Zeros when it does not say.
struct SocketProgress {
  std::uint64_t received = 0;      // since the connection was made
  std::uint64_t acknowledged = 0;  // by the other end
  std::size_t outgoing = 0;        // written here and not acknowledged yet
  Duration least_round_trip{};
};
SocketProgress progress_of(int descriptor);

}  // namespace dpwa::net
