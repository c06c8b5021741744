#pragma once

#include <map>
#include <string>
#include <vector>

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

}  // namespace dpwa::config
