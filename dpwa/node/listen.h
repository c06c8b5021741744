#pragma once

#include <cstdint>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/server.h"

namespace dpwa {

// Calls Server::listen() again while the address is in use: by an outgoing connection that has got
// this port, or by a process that is about to end. Gives up after `patience`; when a process of
// this cluster answers at `address`, after about a second, with its name. Returns the port; throws
// std::runtime_error.
std::uint16_t listen_patiently(Server& server, const PeerAddress& address,
                               const LocalProcess& local, Duration patience);

// Where a process that listens as `entry` says can itself be asked whether it runs already.
PeerAddress own_address(const NodeEntry& entry);

}  // namespace dpwa
