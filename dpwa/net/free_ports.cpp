#include "dpwa/net/free_ports.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <list>
#include <random>
#include <stdexcept>
#include <string>

namespace dpwa::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::datagram_protocol;

bool nobody_has(asio::io_context& io, std::uint16_t port) {
  tcp::acceptor probe(io, tcp::v4());
  boost::system::error_code taken;
  probe.bind(tcp::endpoint(asio::ip::address_v4::any(), port), taken);
  return !taken;
}

// Reserves the port until this process ends, against other callers of free_ports(): the node of a
// port may not listen yet, or be down for a moment. The name of an abstract Unix socket ends with
// its process.
bool reserve(asio::io_context& io, std::list<datagram_protocol::socket>& held, std::uint16_t port) {
  datagram_protocol::socket name(io, datagram_protocol());
  boost::system::error_code taken;
  name.bind(std::string(1, '\0') + "dpwa-port-" + std::to_string(port), taken);
  if (!taken) held.push_back(std::move(name));
  return !taken;
}

}  // namespace

std::vector<std::uint16_t> free_ports(std::size_t count) {
  constexpr int tries = 10'000;
  static auto& io = *new asio::io_context;
  static auto& held = *new std::list<datagram_protocol::socket>;
  std::random_device random;
  std::uniform_int_distribution<std::uint16_t> candidates(12'000, 31'999);
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < tries && ports.size() < count; ++i) {
    const std::uint16_t port = candidates(random);
    if (reserve(io, held, port) && nobody_has(io, port)) ports.push_back(port);
  }
  if (ports.size() < count) throw std::runtime_error("no free ports");
  return ports;
}

std::string listening_problem(const std::string& address, std::uint16_t port) {
  asio::io_context io;
  boost::system::error_code error;
  const asio::ip::address at = asio::ip::make_address(address, error);
  if (error) return error.message();
  const tcp::endpoint endpoint(at, port);
  tcp::acceptor probe(io);
  probe.open(endpoint.protocol(), error);
  if (!error) probe.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) probe.bind(endpoint, error);
  if (!error) probe.listen(1, error);
  return error ? error.message() : "";
}

}  // namespace dpwa::net
