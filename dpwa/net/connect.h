#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "dpwa/net/connection.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/stream.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
class Security;
}

namespace dpwa::net {

// Make a connection ready for frames. The caller keeps the deadlines: it closes the stream, and
// these end with Failure::Kind::ended instead of trying the next address. After a failure the
// stream is to be closed.

// Connects `socket` to the first address of `peer` that accepts. None: done.
boost::asio::awaitable<std::optional<Failure>> connect(boost::asio::ip::tcp::socket& socket,
                                                       const PeerAddress& peer);

// Authenticates both ends of a stream that this end has just connected to `peer`, by `security`
// (null: not at all). None: done.
boost::asio::awaitable<std::optional<Failure>> secure(Stream& stream, const PeerAddress& peer,
                                                      const Security* security);

// Connects to `peer`, secures the connection and introduces this node by a HELLO of `request_id`. A
// peer without a name stands for any node at its address. The result: the WELCOME of the peer,
// which is ready for requests.
boost::asio::awaitable<IoResult<wire::Welcome>> open_connection(Connection& connection,
                                                                LocalProcess& local,
                                                                const PeerAddress& peer,
                                                                std::uint32_t request_id);

// The same as an observer of `cluster`, which has no name, over a new connection.
boost::asio::awaitable<IoResult<wire::Welcome>> open_as_observer(Connection& connection,
                                                                 const std::string& cluster,
                                                                 const PeerAddress& node,
                                                                 const Security* security);

// Makes an inbound connection ready for frames: the TLS handshake, or nothing when `security` is
// null. A caller of the other kind is told at once: a caller without TLS by a REJECT, a caller with
// TLS, where there is none, by an alert. A failure states what is wrong with the caller, which has
// been told by then; finish() gives it the time to read that. A failure without words: the caller
// left without sending a byte.
boost::asio::awaitable<std::optional<Failure>> secure_inbound(Stream& stream,
                                                              const Security* security);

}  // namespace dpwa::net
