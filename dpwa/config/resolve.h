#pragma once

#include <map>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

struct Resolved {
  std::vector<std::string> addresses;  // numeric, each once, IPv4 first; empty = failed
  std::string error;                   // why, when there are none
};

// Host names to addresses by the system's resolver (blocking), each name asked once. IPv4 comes
// first because "localhost" names ::1 also on machines that have no IPv6 to listen on.
class Resolver {
 public:
  const Resolved& resolve(const std::string& host);

 private:
  std::map<std::string, Resolved> known_;
};

bool is_loopback(const std::string& address);
bool is_wildcard(const std::string& address);  // 0.0.0.0 or ::

// Resolves every host into NodeEntry::addresses and bind_address. Throws ConfigError for a host
// that cannot be resolved, for two nodes at one endpoint, and for listening beyond loopback without
// an explicit `security`.
void resolve_nodes(Config& config, const Locations& locations);

}  // namespace dpwa::config
