#include "dpwa/config/resolve.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace dpwa::config {
namespace {

namespace ip = boost::asio::ip;

// An IPv4 address in IPv6 clothes (::ffff:127.0.0.1) counts as what it is.
ip::address plain(const std::string& text) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  if (!error && address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  return address;
}

Resolved ask(const std::string& host) {
  boost::asio::io_context context;
  ip::tcp::resolver resolver(context);
  boost::system::error_code error;
  const auto results = resolver.resolve(host, "", error);
  Resolved resolved;
  if (error) {
    resolved.error = error.message();
    return resolved;
  }
  std::vector<std::string> of_ipv6;  // last
  for (const auto& entry : results) {
    const auto address = plain(entry.endpoint().address().to_string());
    std::vector<std::string>& alike = address.is_v6() ? of_ipv6 : resolved.addresses;
    const std::string text = address.to_string();
    if (std::ranges::find(alike, text) == alike.end()) alike.push_back(text);
  }
  resolved.addresses.insert(resolved.addresses.end(), of_ipv6.begin(), of_ipv6.end());
  return resolved;
}

}  // namespace

const Resolved& Resolver::resolve(const std::string& host) {
  const auto found = known_.find(host);
  return found != known_.end() ? found->second : known_.emplace(host, ask(host)).first->second;
}

bool is_loopback(const std::string& address) {
  return plain(address).is_loopback();
}
bool is_wildcard(const std::string& address) {
  return plain(address).is_unspecified();
}

}  // namespace dpwa::config
