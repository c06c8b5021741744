#include "dpwa/cli/local_machine.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <memory>

#include "dpwa/config/resolve.h"

namespace dpwa::cli {
namespace {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// Without the zone of a link-local address ("fe80::1%eth0").
std::string without_zone(std::string address) {
  return address.substr(0, address.find('%'));
}

std::set<std::string> interface_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::set<std::string> addresses;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(entry->ifa_addr, length, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.insert(without_zone(text.data()));
    }
  }
  return addresses;
}

}  // namespace

LocalMachine::LocalMachine() : LocalMachine(host_name(), interface_addresses()) {}

LocalMachine::LocalMachine(std::string name, std::set<std::string> addresses)
    : name_(std::move(name)), addresses_(std::move(addresses)) {}

bool LocalMachine::hosts(const NodeEntry& node) const {
  if (node.host == name_ && !name_.empty()) return true;
  return std::any_of(node.addresses.begin(), node.addresses.end(), [&](const std::string& address) {
    return config::is_loopback(address) || addresses_.count(without_zone(address)) > 0;
  });
}

}  // namespace dpwa::cli
