#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

namespace dpwa::net {

// As it is stored and shown: an IPv4 address that came as an IPv6 one (::ffff:10.0.0.1) is IPv4.
std::string text_of(const boost::asio::ip::address& address);

// What one caller is held to have for itself, so that bounds count by it: an IPv4 address, or the
// /64 that an IPv6 address is in, within which a host takes as many addresses as it likes. Loopback
// and link-local addresses stand for themselves. Pure.
std::string network_of(const boost::asio::ip::address& address);
std::string network_of(const std::string& text);  // text that is not an address stays as it is

}  // namespace dpwa::net
