#include "dpwa/config/resolve.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/text.h"
#include "dpwa/log/log.h"

namespace dpwa::config {
namespace {

namespace ip = boost::asio::ip;

// An IPv4 address that is mapped into IPv6 (::ffff:127.0.0.1) counts as IPv4.
ip::address plain(const std::string& text) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  if (!error && address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  return address;
}

thread_local const std::stop_token* gives_up_at = nullptr;

// The result of the asking thread, which shares ownership, so that nobody has to wait for it.
struct Question {
  Mutex mutex;
  Condition changed;
  std::optional<Resolved> answer DPWA_GUARDED_BY(mutex);
};

Resolved ask_until(const std::stop_token& stop, const std::string& host) {
  const auto question = std::make_shared<Question>();
  start_background_thread([question, host] {
    name_thread("dpwa-resolve");
    Resolved answer = resolve_host(host);
    const MutexLock lock(question->mutex);
    question->answer = std::move(answer);
    question->changed.notify_all();
  }).detach();
  const std::stop_callback wake(stop, [&question] {
    const MutexLock lock(question->mutex);
    question->changed.notify_all();
  });
  MutexLock lock(question->mutex);
  while (!question->answer && !stop.stop_requested()) question->changed.wait(lock);
  if (!question->answer) throw ConfigError("gave up resolving " + shown(host));
  return *question->answer;
}

// Empty, after a line in the log, for the host of another node that cannot be resolved: a name that
// is not known at this moment keeps no node from running with the others.
// An address of many machines: TCP has no connections to it.
bool is_of_many(const std::string& address) {
  const ip::address parsed = plain(address);
  return parsed.is_multicast() || parsed == ip::address(ip::address_v4::broadcast());
}

// Finds two nodes that peers would dial, or that would listen, at the same address and port. A
// wildcard or loopback address to listen on belongs to the machine of the node. Two of them clash
// only on one machine, which means that both nodes are dialled over loopback.
class Endpoints {
 public:
  explicit Endpoints(const Locations& locations) : locations_(locations) {}

  // `place`: of the entry in the file, such as "nodes[0]". The entry outlives this object.
  void add(const std::string& place, const NodeEntry& node) {
    if (node.addresses.empty() || node.bind_address.empty()) return;  // not known yet
    for (const std::string& address : node.addresses) claim(dialled_, address, place, node, "port");
    const bool on_loopback = is_loopback(node.addresses.front());
    const std::string machine = on_loopback ? "loopback " : "";
    if (is_wildcard(node.bind_address)) {
      if (on_loopback) claim(listening_, machine + "any", place, node, "bind");
    } else if (on_loopback || !is_loopback(node.bind_address)) {
      claim(listening_, machine + node.bind_address, place, node, "bind");
    }
  }

 private:
  using Claims = std::map<std::pair<std::string, std::uint16_t>, const NodeEntry*>;

  void claim(Claims& claims, const std::string& address, const std::string& place,
             const NodeEntry& node, const std::string& key) {
    const auto [found, first] = claims.try_emplace({address, node.port}, &node);
    if (first || found->second == &node) return;
    const std::string& host = key == "bind" ? node.bind_host() : node.host;
    locations_.fail(place + "." + key, shown(host + ":" + std::to_string(node.port)) +
                                           " is already the endpoint of node '" +
                                           found->second->name +
                                           "'; accepted: a port or host of its own");
  }

  const Locations& locations_;
  Claims dialled_;
  Claims listening_;
};

}  // namespace

const Resolved& Resolver::resolve(const std::string& host) {
  const auto found = known_.find(host);
  if (found != known_.end()) return found->second;
  Resolved resolved = gives_up_at ? ask_until(*gives_up_at, host) : resolve_host(host);
  return known_.emplace(host, std::move(resolved)).first->second;
}

GivesUp::GivesUp(std::stop_token stop) : stop_(std::move(stop)) {
  gives_up_at = &stop_;
}
GivesUp::~GivesUp() {
  gives_up_at = nullptr;
}

std::vector<std::string> addresses_of(const std::string& host, Resolver& resolver, bool own,
                                      const std::string& key, const Locations& locations) {
  const Resolved& result = resolver.resolve(host);
  if (!result.addresses.empty()) return result.addresses;
  try {
    locations.fail(key, shown(host) + " cannot be resolved (" + result.error +
                            "); accepted: an IP address or a host name known here");
  } catch (const ConfigError& error) {
    if (own) throw;
    log(LogLevel::warn, "config", error.what());
  }
  return last_addresses(host).value_or(std::vector<std::string>());
}

bool is_loopback(const std::string& address) {
  return plain(address).is_loopback();
}
bool is_wildcard(const std::string& address) {
  return plain(address).is_unspecified();
}

void resolve_nodes(Config& config, const Locations& locations) {
  Resolver resolver;
  Endpoints endpoints(locations);
  const auto resolve = [&](const std::string& place, NodeEntry& node) {
    const bool own = node.name == config.self;
    node.addresses = addresses_of(node.host, resolver, own, place + ".host", locations);
    if (std::any_of(node.addresses.begin(), node.addresses.end(), is_wildcard)) {
      locations.fail(place + ".host", shown(node.host) +
                                          " is not an address that peers can dial; accepted: "
                                          "the address of the machine (and bind: " +
                                          node.host + " to listen everywhere)");
    }
    if (std::any_of(node.addresses.begin(), node.addresses.end(), is_of_many)) {
      locations.fail(place + ".host", shown(node.host) +
                                          " is a multicast or broadcast address; accepted: the "
                                          "address of one machine");
    }
    const std::string bind_key = place + (node.bind.empty() ? ".host" : ".bind");
    const auto bind = node.bind.empty()
                          ? node.addresses
                          : addresses_of(node.bind, resolver, own, bind_key, locations);
    node.bind_address = bind.empty() ? "" : bind.front();
    endpoints.add(place, node);
    const bool known = !node.bind_address.empty();
    if (known && config.security.mode.empty() && !is_loopback(node.bind_address)) {
      locations.fail(locations.has(bind_key) ? bind_key : "security",
                     shown(node.bind_host()) +
                         " listens beyond loopback without a security mode; accepted: "
                         "security: {mode: psk, key_file: FILE}, {mode: insecure} on a private "
                         "network, or a loopback address");
    }
  };
  const auto resolve_all = [&](const std::string& list, std::vector<NodeEntry>& entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      resolve(list + "[" + std::to_string(i) + "]", entries[i]);
    }
  };
  resolve_all("nodes", config.nodes);
  resolve_all("kvstore.servers", config.kvstore.servers);
}

}  // namespace dpwa::config
