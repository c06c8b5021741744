#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

namespace dpwa::net {

// The address as it is stored and shown: an IPv4 address in IPv6 form (::ffff:10.0.0.1) as IPv4.
std::string text_of(const boost::asio::ip::address& address);

// The network that bounds count as one caller: an IPv4 address, or the /64 of an IPv6 address,
// because a host can use any number of addresses within its /64. A loopback or link-local address
// is a network of its own. Pure.
std::string network_of(const boost::asio::ip::address& address);
std::string network_of(const std::string& text);  // text that is not an address stays as it is

}  // namespace dpwa::net
