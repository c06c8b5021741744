#include "dpwa/config/host_check.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/config/text.h"

namespace dpwa {
namespace {

std::vector<std::string> words_in(const char* file) {
  std::vector<std::string> words;
  std::ifstream stream(file);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// 0, or the error with which the kernel refuses it. This asks the kernel instead of reading its
// list: the kernel may load a module for a name, and only root may use some names.
int refusal_of(const std::string& name) {
  const FileDescriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return 0;  // without IPv4 there is no way to find out
  const auto size = static_cast<socklen_t>(name.size());
  if (::setsockopt(probe.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), size) == 0) return 0;
  return errno == ENOENT || errno == EPERM ? errno : 0;
}

}  // namespace

namespace config {

std::string congestion_control_refusal(const std::string& name, int error,
                                       const std::vector<std::string>& available,
                                       const std::vector<std::string>& allowed) {
  if (error == EPERM) {
    return shown(name) + " is not allowed on this host; accepted: auto, or one of " +
           joined(allowed) + " (root adds to net.ipv4.tcp_allowed_congestion_control)";
  }
  std::vector<std::string> known = available;
  known.insert(known.begin(), "auto");
  return shown(name) + " is not a congestion control of this host," + suggestion(name, known) +
         " accepted: " + joined(known);
}

}  // namespace config

std::optional<std::string> congestion_control_problem(const Config& config) {
  const std::string& name = config.transport.congestion_control;
  const int error = name == "auto" ? 0 : refusal_of(name);
  if (error == 0) return std::nullopt;
  try {
    fail_at_key(config, "transport.congestion_control",
                config::congestion_control_refusal(
                    name, error, words_in("/proc/sys/net/ipv4/tcp_available_congestion_control"),
                    words_in("/proc/sys/net/ipv4/tcp_allowed_congestion_control")));
  } catch (const ConfigError& found) {
    return found.what();
  }
}

void check_host(const Config& config) {
  if (const auto problem = congestion_control_problem(config)) throw ConfigError(*problem);
}

}  // namespace dpwa
