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
  std::vector<std::string>& addresses = resolved.addresses;
  for (const auto& entry : results) {
    const std::string address = plain(entry.endpoint().address().to_string()).to_string();
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  }
  std::stable_partition(addresses.begin(), addresses.end(), [](const std::string& address) {
    return address.find(':') == std::string::npos;
  });
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
