#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dpwa::launch {

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

// As long as it lives, this thread asks no name server. LibTorch looks up the name of every address
// to which its store connects, for messages that are not shown. If no name server answers, this
// takes many seconds. Names of /etc/hosts are still found.
class WithoutNameServers {
 public:
  WithoutNameServers();
  ~WithoutNameServers();
  WithoutNameServers(const WithoutNameServers&) = delete;
  WithoutNameServers& operator=(const WithoutNameServers&) = delete;

 private:
  int servers_;
};

// Waits until something accepts a connection at `host`:`port`. Returns the numeric address that
// did. Throws std::runtime_error with the last reason if nothing does within `limit`.
std::string await_listener(const std::string& host, std::uint16_t port,
                           std::chrono::milliseconds limit);

}  // namespace dpwa::launch
