#include "dpwa/net/network.h"

#include <algorithm>
#include <boost/asio/ip/address_v6.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace dpwa::net {
namespace {

namespace ip = boost::asio::ip;

ip::address unmapped(const ip::address& address) {
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  return mapped ? ip::make_address_v4(ip::v4_mapped, address.to_v6()) : address;
}

}  // namespace

std::string text_of(const ip::address& address) {
  return unmapped(address).to_string();
}

std::string network_of(const ip::address& address) {
  const ip::address plain = unmapped(address);
  const bool alone = plain.is_v4() || plain.is_loopback() || plain.to_v6().is_link_local();
  if (alone) return plain.to_string();
  return ip::network_v6(plain.to_v6(), 64).canonical().to_string();
}

std::string network_of(const std::string& text) {
  boost::system::error_code error;
  const auto address = ip::make_address(text, error);
  return error ? text : network_of(address);
}

}  // namespace dpwa::net
