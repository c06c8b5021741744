#include "dpwa/net/connect.h"

#include <boost/asio/ip/address.hpp>

#include "dpwa/net/as_result.h"

namespace dpwa::net {

namespace asio = boost::asio;
using asio::ip::tcp;

asio::awaitable<boost::system::error_code> connect(tcp::socket& socket, const PeerAddress& peer) {
  boost::system::error_code last = asio::error::host_not_found;
  for (const std::string& text : peer.addresses) {
    const auto address = asio::ip::make_address(text, last);
    if (last) continue;
    boost::system::error_code ignored;
    socket.close(ignored);
    const tcp::endpoint endpoint(address, peer.port);
    const auto [error] = co_await socket.async_connect(endpoint, as_result);
    last = error;
    if (!socket.is_open()) {  // the deadline has passed, however this attempt ended
      last = asio::error::operation_aborted;
      break;
    }
    if (!error) break;
  }
  co_return last;
}

}  // namespace dpwa::net
