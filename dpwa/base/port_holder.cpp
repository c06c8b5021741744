#include "dpwa/base/port_holder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "dpwa/base/plain_text.h"

namespace dpwa {
namespace {

namespace fs = std::filesystem;

// As /proc/net/tcp and tcp6 write a numeric address: words of four bytes, each as the number that
// this machine reads in it. Empty: it is none.
std::string hex_of(const std::string& address) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const bool is_v6 = ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
  if (!is_v6 && ::inet_pton(AF_INET, address.c_str(), bytes.data()) != 1) return "";
  std::string text;
  for (std::size_t at = 0; at < (is_v6 ? sizeof(in6_addr) : sizeof(in_addr)); at += 4) {
    unsigned word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08X", word);
    text += digits.data();
  }
  return text;
}

bool is_zero(std::string_view hex) {
  return hex.find_first_not_of('0') == std::string_view::npos;
}

// The links in /proc/*/fd to the sockets that hold the port at this address.
std::set<std::string> sockets_at(const std::string& address, std::uint16_t port) {
  const std::string own = hex_of(address);
  if (own.empty()) return {};
  std::set<std::string> links;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream table(file);
    std::string line;
    std::getline(table, line);  // the titles
    while (std::getline(table, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues, timer, retries, user, timeout, inode;
      fields >> number >> local >> remote >> state >> queues >> timer >> retries >> user >>
          timeout >> inode;
      const auto colon = local.find(':');
      if (!fields || colon == std::string::npos) continue;
      const std::string at = local.substr(0, colon);
      const bool same_port = std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port;
      if (same_port && (at == own || is_zero(at) || is_zero(own)))
        links.insert("socket:[" + inode + "]");
    }
  }
  return links;
}

bool holds_one(const fs::path& process, const std::set<std::string>& links) {
  std::error_code gone;
  fs::directory_iterator descriptors(process / "fd", gone);
  while (!gone && descriptors != fs::directory_iterator()) {
    std::error_code closed;
    if (links.contains(fs::read_symlink(descriptors->path(), closed).string())) return true;
    descriptors.increment(gone);
  }
  return false;
}

}  // namespace

std::string port_holder(const std::string& address, std::uint16_t port) {
  const std::set<std::string> links = sockets_at(address, port);
  std::error_code error;
  fs::directory_iterator processes("/proc", error);
  while (!links.empty() && !error && processes != fs::directory_iterator()) {
    const fs::path& path = processes->path();
    const std::string id = path.filename().string();
    if (id.find_first_not_of("0123456789") == std::string::npos && holds_one(path, links)) {
      std::string name;
      std::getline(std::ifstream(path / "comm"), name);
      return "process " + id + (name.empty() ? "" : " (" + one_line(name) + ")");
    }
    processes.increment(error);
  }
  return "";
}

}  // namespace dpwa
