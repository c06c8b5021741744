#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/resolve_host.h"
#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

// Host names to addresses, each name asked once.
class Resolver {
 public:
  const Resolved& resolve(const std::string& host);

 private:
  std::map<std::string, Resolved> known_;
};

// While an object of this class lives, resolve() on its thread asks on another thread. When `stop`
// is requested, resolve() throws ConfigError at once and leaves that thread alone, so that a
// process that ends need not wait for a name server.
class GivesUp {
 public:
  explicit GivesUp(std::stop_token stop);
  ~GivesUp();
  GivesUp(const GivesUp&) = delete;
  GivesUp& operator=(const GivesUp&) = delete;

 private:
  const std::stop_token stop_;
};

// The addresses of `host`, the value of `key`. Where it cannot be resolved: throws ConfigError if
// it is of this process (`own`); else those that were known in this process last, and a line in the
// log.
std::vector<std::string> addresses_of(const std::string& host, Resolver& resolver, bool own,
                                      const std::string& key, const Locations& locations);

bool is_loopback(const std::string& address);
bool is_wildcard(const std::string& address);  // 0.0.0.0 or ::

// Resolves every host into NodeEntry::addresses and bind_address. Throws ConfigError for a host of
// this process (Config::self) that cannot be resolved, for two nodes at one endpoint, and for
// listening beyond loopback without an explicit `security`. The host of another process that cannot
// be resolved is a line in the log; it keeps the addresses that were known in this process last, or
// has none, and is looked up again when it is dialled (net/host_names.h).
void resolve_nodes(Config& config, const Locations& locations);

}  // namespace dpwa::config
