#include "dpwa/net/free_ports.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <random>
#include <stdexcept>

namespace dpwa::net {

std::vector<std::uint16_t> free_ports(std::size_t count) {
  using boost::asio::ip::tcp;
  constexpr int tries = 1000;
  std::random_device random;
  std::uniform_int_distribution<std::uint16_t> candidates(12000, 31999);
  boost::asio::io_context io;
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < tries && ports.size() < count; ++i) {
    const std::uint16_t port = candidates(random);
    tcp::acceptor probe(io, tcp::v4());
    boost::system::error_code taken;
    probe.bind(tcp::endpoint(boost::asio::ip::address_v4::loopback(), port), taken);
    if (!taken && std::ranges::find(ports, port) == ports.end()) ports.push_back(port);
  }
  if (ports.size() < count) throw std::runtime_error("no free ports");
  return ports;
}

}  // namespace dpwa::net
