#include "bench/worker/free_ports.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace dpwa::bench {

std::vector<std::uint16_t> free_ports(std::size_t count) {
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  std::vector<tcp::acceptor> held;  // until all are chosen, so that they are distinct
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    held.emplace_back(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    ports.push_back(held.back().local_endpoint().port());
  }
  return ports;
}

}  // namespace dpwa::bench
