#include "dpwa/net/network.h"

#include <doctest/doctest.h>

namespace dpwa {

TEST_CASE("callers count by IPv4 address, and by the 64 bits of an IPv6 network") {
  CHECK(net::network_of("10.0.0.1") == "10.0.0.1");
  CHECK(net::network_of("::ffff:10.0.0.1") == "10.0.0.1");
  CHECK(net::network_of("2001:db8:1:2::1") == net::network_of("2001:db8:1:2:ffff::9"));
  CHECK(net::network_of("2001:db8:1:2::1") == "2001:db8:1:2::/64");
  CHECK(net::network_of("2001:db8:1:3::1") != net::network_of("2001:db8:1:2::1"));
}

TEST_CASE("loopback and link-local addresses count for themselves") {
  CHECK(net::network_of("::1") == "::1");
  CHECK(net::network_of("127.0.0.2") != net::network_of("127.0.0.1"));
  CHECK(net::network_of("fe80::1%lo") == "fe80::1%lo");
  CHECK(net::network_of("fe80::1%lo") != net::network_of("fe80::2%lo"));
}

TEST_CASE("a text that is not an address stays as it is") {
  CHECK(net::network_of("peer") == "peer");
}

TEST_CASE("an IPv4 address that came as an IPv6 one is shown as IPv4") {
  CHECK(net::text_of(boost::asio::ip::make_address("::ffff:127.0.0.1")) == "127.0.0.1");
  CHECK(net::text_of(boost::asio::ip::make_address("::1")) == "::1");
}

}  // namespace dpwa
