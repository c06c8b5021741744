#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dpwa {

struct Resolved {
  std::vector<std::string> addresses;  // numeric, each once, IPv4 first; empty = failed
  std::string error;                   // why, when there are none
};

// The addresses of a host by the system's resolver, which blocks: for ten seconds and more while a
// name server does not answer. IPv4 comes first because "localhost" names ::1 also on machines that
// have no IPv6 to listen on. Any thread.
Resolved resolve_host(const std::string& host);

// The addresses of the last successful resolve_host() of this name in this process. None: there was
// none. Any thread.
std::optional<std::vector<std::string>> last_addresses(const std::string& host);

// An address, not a name. Asks nobody.
bool is_numeric_host(const std::string& host);

// For tests: while it lives, resolve_host() asks this function and not the system for names. The
// function may be called by any thread, and by one that outlives this object.
class ResolverDouble {
 public:
  explicit ResolverDouble(std::function<Resolved(const std::string& host)> ask);
  ~ResolverDouble();
  ResolverDouble(const ResolverDouble&) = delete;
  ResolverDouble& operator=(const ResolverDouble&) = delete;
};

}  // namespace dpwa
