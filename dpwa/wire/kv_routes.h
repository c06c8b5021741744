#pragma once

#include <cstdint>
#include <vector>

#include "dpwa/wire/frame.h"

namespace dpwa::wire {

// Which processes of the store send which of its messages to which: the only list of it, for all
// that read them from a connection. A process that gets another one closes the connection.
enum class KvRoute : std::uint8_t { worker_to_server, server_to_server, server_to_worker };

// The messages of this way, each with the bound of its body.
const std::vector<TypeBound>& kv_types(KvRoute route);

}  // namespace dpwa::wire
