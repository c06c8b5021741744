#include "dpwa/base/resolve_host.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "dpwa/base/threads.h"

namespace dpwa {
namespace {

using Ask = std::function<Resolved(const std::string& host)>;
using Found = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// What a thread that is left alone at the end of the process may still use: never destroyed.
struct Answers {
  Mutex mutex;
  std::shared_ptr<const Ask> instead DPWA_GUARDED_BY(mutex);  // of the system
  std::map<std::string, std::vector<std::string>> last DPWA_GUARDED_BY(mutex);
};

Answers& answers() {
  static Answers& all = *new Answers;
  return all;
}

// An IPv4 address that is mapped into IPv6 (::ffff:127.0.0.1) counts as IPv4.
std::string numeric(const addrinfo& entry) {
  sockaddr_storage address{};
  socklen_t length = entry.ai_addrlen;
  std::memcpy(&address, entry.ai_addr, length);
  if (entry.ai_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, entry.ai_addr, sizeof six);
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
      sockaddr_in four{};
      four.sin_family = AF_INET;
      std::memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
      length = sizeof four;
      std::memcpy(&address, &four, length);
    }
  }
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text.data(), text.size(),
              nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

int look_up(const std::string& host, int flags, Found& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int problem = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  found.reset(problem == 0 ? list : nullptr);
  return problem;
}

Resolved ask_system(const std::string& host) {
  Found found(nullptr, &freeaddrinfo);
  Resolved resolved;
  const int problem = look_up(host, 0, found);
  if (problem != 0) {
    resolved.error = problem == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(problem);
    return resolved;
  }
  std::vector<std::string> of_ipv6;  // last
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    std::string text = numeric(*entry);
    const bool is_ipv6 = text.find(':') != std::string::npos;
    std::vector<std::string>& alike = is_ipv6 ? of_ipv6 : resolved.addresses;
    if (std::ranges::find(alike, text) == alike.end()) alike.push_back(std::move(text));
  }
  resolved.addresses.insert(resolved.addresses.end(), of_ipv6.begin(), of_ipv6.end());
  return resolved;
}

}  // namespace

Resolved resolve_host(const std::string& host) {
  Answers& all = answers();
  std::shared_ptr<const Ask> ask;
  {
    const MutexLock lock(all.mutex);
    ask = all.instead;
  }
  const bool is_name = !is_numeric_host(host);
  Resolved resolved = ask && is_name ? (*ask)(host) : ask_system(host);
  if (!resolved.addresses.empty() && is_name) {
    const MutexLock lock(all.mutex);
    all.last[host] = resolved.addresses;
  }
  return resolved;
}

std::optional<std::vector<std::string>> last_addresses(const std::string& host) {
  Answers& all = answers();
  const MutexLock lock(all.mutex);
  const auto found = all.last.find(host);
  return found == all.last.end() ? std::nullopt : std::optional(found->second);
}

bool is_numeric_host(const std::string& host) {
  Found found(nullptr, &freeaddrinfo);
  return look_up(host, AI_NUMERICHOST, found) == 0;
}

ResolverDouble::ResolverDouble(std::function<Resolved(const std::string& host)> ask) {
  Answers& all = answers();
  const MutexLock lock(all.mutex);
  all.instead = std::make_shared<const Ask>(std::move(ask));
}

ResolverDouble::~ResolverDouble() {
  Answers& all = answers();
  const MutexLock lock(all.mutex);
  all.instead.reset();
  all.last.clear();
}

}  // namespace dpwa
