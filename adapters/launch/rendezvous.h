#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace c10d {
class Store;
}

namespace dpwa::launch {

// As long as it lives, LibTorch logs errors alone: no stack of the store where that is gone.
class ErrorsOnly {
 public:
  ErrorsOnly();
  ~ErrorsOnly();
  ErrorsOnly(const ErrorsOnly&) = delete;
  ErrorsOnly& operator=(const ErrorsOnly&) = delete;

 private:
  const int before_;
};

// A meeting point of processes that have no connections yet: a c10d::TCPStore, on a free port of
// its host. TCPStore has no authentication: any process that reaches the port can read and write
// it, so it listens only on the given address.
//
// One thread. The destructor of a host ends the store for all, so call leave() first.
class Rendezvous {
 public:
  // Hosts the store on `host`, a name or address of this machine, at `port`; 0: a free one. Throws
  // CollectiveError if nothing can listen there.
  static Rendezvous listen(const std::string& host, std::chrono::milliseconds timeout,
                           std::uint16_t port = 0);
  // A client of the store at `host`. Throws CollectiveError if none answers within `timeout`.
  // `waits`: called again and again while something that listens there does not answer.
  static Rendezvous connect(
      const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout,
      const std::function<void()>& waits = [] {});
  Rendezvous(Rendezvous&&) noexcept;
  Rendezvous& operator=(Rendezvous&&) noexcept;
  ~Rendezvous();

  const std::string& host() const { return host_; }
  std::uint16_t port() const { return port_; }
  bool hosts() const { return hosts_; }
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  // States that this node no longer needs the store. A client returns at once. The host waits until
  // `others` clients have left too; false if some have not within `limit`. Never throws.
  bool leave(int others, std::chrono::milliseconds limit) noexcept;

 private:
  Rendezvous(std::string host, std::uint16_t port, bool hosts,
             c10::intrusive_ptr<c10d::Store> store);

  std::string host_;
  std::uint16_t port_;
  bool hosts_;
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace dpwa::launch
