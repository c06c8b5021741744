#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace dpwa::net {

// Sets up a connected socket for bulk replies: no Nagle delay, keep-alive (a host that vanished is
// noticed while idle), and the congestion control. `congestion_control`: "auto" means reno when
// both ends are on loopback (BBR halves loopback throughput) and the system's default elsewhere;
// any other name is set as given. Failures cost speed only and are ignored.
void tune(boost::asio::ip::tcp::socket& socket, const std::string& congestion_control);

}  // namespace dpwa::net
