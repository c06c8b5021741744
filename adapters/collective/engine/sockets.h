#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dpwa::collective {

// A TCP socket that listens on one address. Closed at the end unless it was released.
class ListeningSocket {
 public:
  // `port` 0: a free one. Throws std::system_error, or std::runtime_error for an unknown host.
  ListeningSocket(const std::string& host, std::uint16_t port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int descriptor() const { return descriptor_; }
  std::uint16_t port() const { return port_; }
  const std::string& address() const { return address_; }  // numeric
  void release() { descriptor_ = -1; }

 private:
  int descriptor_ = -1;
  std::uint16_t port_ = 0;
  std::string address_;
};

// While it lives, this thread asks no name server. LibTorch looks up the name of every address that
// its store connects to, for messages that nobody sees; where no name server answers that takes
// many seconds. Names of /etc/hosts are still found.
class WithoutNameServers {
 public:
  WithoutNameServers();
  ~WithoutNameServers();
  WithoutNameServers(const WithoutNameServers&) = delete;
  WithoutNameServers& operator=(const WithoutNameServers&) = delete;

 private:
  int servers_;
};

// Returns once something accepts a connection at `host`:`port`: at which address of `host`, as a
// number. Throws std::runtime_error with the last reason when nothing does within `limit`.
std::string await_listener(const std::string& host, std::uint16_t port,
                           std::chrono::milliseconds limit);

}  // namespace dpwa::collective
