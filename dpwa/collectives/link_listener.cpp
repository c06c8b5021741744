#include "dpwa/collectives/link_listener.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <system_error>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/resolve_host.h"
#include "dpwa/security/key_file.h"

namespace dpwa::collectives {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

tcp::endpoint endpoint_of(const std::string& host) {
  const Resolved resolved = resolve_host(host);
  if (resolved.addresses.empty()) {
    throw std::system_error(std::make_error_code(std::errc::address_not_available),
                            "cannot listen at " + one_line(host) + ": " + resolved.error);
  }
  return {asio::ip::make_address(resolved.addresses.front()), 0};
}

}  // namespace

LinkListener::LinkListener(const std::string& address) {
  const tcp::endpoint endpoint = endpoint_of(address);
  asio::io_context io;
  tcp::acceptor acceptor(io);
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw std::system_error(error, "cannot listen at " + one_line(address));
  address_.host = address;
  address_.port = acceptor.local_endpoint().port();
  address_.token = new_key();
  is_ipv6_ = endpoint.address().is_v6();
  socket_ = FileDescriptor(acceptor.release());
}

}  // namespace dpwa::collectives
