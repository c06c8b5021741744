#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include "adapters/collective/engine/engine.h"

namespace c10d {
class Store;
}

namespace dpwa::collective {

// Where the members of one group find one another: a c10d::TCPStore, made anew for every epoch, on
// a free port of its host. Needed only while the group forms. TCPStore asks nobody who they are:
// whoever reaches the port can read and write it, so it listens on the one address that was named.
//
// One thread. The destructor of a host ends the store for all: leave() before.
class Rendezvous {
 public:
  // Hosts the store on `host`, a name or address of this machine, at `port`; 0: a free one. Throws
  // CollectiveError where nothing can listen there.
  static Rendezvous listen(const std::string& host, std::chrono::milliseconds timeout,
                           std::uint16_t port = 0);
  // A client of the store at `host`. Throws CollectiveError where none answers within `timeout`.
  static Rendezvous connect(const std::string& host, std::uint16_t port,
                            std::chrono::milliseconds timeout);
  // No store, for an engine whose members have met already.
  static Rendezvous none();
  Rendezvous(Rendezvous&&) noexcept;
  Rendezvous& operator=(Rendezvous&&) noexcept;
  ~Rendezvous();

  const std::string& host() const { return host_; }
  std::uint16_t port() const { return port_; }
  bool hosts() const { return hosts_; }
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  // Says that this node needs the store no longer. A client returns at once. The host waits until
  // `others` clients have left too; false where some have not within `limit`. Never throws.
  bool leave(int others, std::chrono::milliseconds limit) noexcept;

 private:
  Rendezvous(std::string host, std::uint16_t port, bool hosts,
             c10::intrusive_ptr<c10d::Store> store);

  std::string host_;
  std::uint16_t port_;
  bool hosts_;
  c10::intrusive_ptr<c10d::Store> store_;
};

// The numeric address from which this machine talks to `host`: the one by which peers on that side
// reach it. Sends nothing. Throws CollectiveError for a host that has no address or no route.
std::string address_towards(const std::string& host);

// Before any connection is made: waits in the store until every rank has come, exactly once, with
// the same size, epoch and engine. A member that does not fit fails all of them with one sentence,
// where an engine would wait or mix up its connections. Throws CollectiveError: usage for members
// that do not fit; timeout, with the ranks that have not come; lost when the store's host goes;
// cancelled when `stop` is requested.
void admit(const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options,
           const std::string& engine, const std::stop_token& stop);

}  // namespace dpwa::collective
