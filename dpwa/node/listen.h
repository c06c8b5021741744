#pragma once

#include <cstdint>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/server.h"

namespace dpwa {

// Calls Server::listen() again while the address of `entry`, that of this process, is in use: by an
// outgoing connection that has got this port, or by a process that is about to end. Gives up after
// `patience`; when a process of this cluster answers there, after about a second, with its name.
// Warns in the log when the process is open to every caller. Returns the port; throws
// std::runtime_error.
std::uint16_t listen_patiently(Server& server, const NodeEntry& entry, const LocalProcess& local,
                               Duration patience);

// The address, numeric, at which a process listens as `entry` says.
std::string bound_at(const NodeEntry& entry);

}  // namespace dpwa
