#include "dpwa/net/socket_options.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

namespace dpwa::net {

void tune(boost::asio::ip::tcp::socket& socket, const std::string& congestion_control) {
  using boost::asio::ip::tcp;
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(tcp::socket::keep_alive(true), ignored);
  std::string algorithm = congestion_control;
  if (algorithm == "auto") {
    const auto remote = socket.remote_endpoint(ignored);
    algorithm = !ignored && remote.address().is_loopback() ? "reno" : "";
  }
  if (!algorithm.empty()) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, algorithm.data(),
                 static_cast<socklen_t>(algorithm.size()));
  }
}

}  // namespace dpwa::net
