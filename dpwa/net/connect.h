#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include "dpwa/net/peer_address.h"

namespace dpwa::net {

// Connects `socket` to the first address of `peer` that accepts. Deadlines are the caller's: it
// closes the socket, and this ends with operation_aborted instead of trying the next address.
boost::asio::awaitable<boost::system::error_code> connect(boost::asio::ip::tcp::socket& socket,
                                                          const PeerAddress& peer);

}  // namespace dpwa::net
