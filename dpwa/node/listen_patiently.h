#pragma once

#include <cstdint>

#include "dpwa/base/time.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/server.h"

namespace dpwa {

// Server::listen(), tried again while the address is in use: by an outgoing connection that was
// given its port, or by a process that is about to end. Gives up after `patience`; after about a
// second, and with the holder's name, where a node of this cluster answers at `address`. Returns
// the port; throws std::runtime_error.
std::uint16_t listen_patiently(Server& server, const PeerAddress& address, const LocalNode& local,
                               Duration patience);

}  // namespace dpwa
