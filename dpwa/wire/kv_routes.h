#pragma once

#include <cstdint>
#include <vector>

#include "dpwa/wire/frame.h"

namespace dpwa::wire {

// The routes of the messages of the store, by the kinds of sender and receiver: the only list of
// them, for all that read messages from a connection. A process that gets another one closes the
// connection.
enum class KvRoute : std::uint8_t { worker_to_server, server_to_server, server_to_worker };

// The messages of this way, each with the bound of its body.
const std::vector<TypeBound>& kv_types(KvRoute route);

}  // namespace dpwa::wire
