#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dpwa/kvstore/messages.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/same_host/memory_exchange.h"
#include "dpwa/net/same_host/memory_server.h"
#include "dpwa/snapshot/loan.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::kvserver {

// Memory that a server and workers of the same host and user read from one another, beside their
// connections: gradients where the worker has them, values where the server has them. Rx thread
// only, but for listen() before it runs.
class SharedMemoryServer {
 public:
  SharedMemoryServer(boost::asio::io_context& io, LocalProcess& local);

  // As those of MemoryServer.
  bool listen() { return server_.listen(); }
  const std::string& offer() const { return server_.offer(); }
  void serve() { server_.serve(); }
  void stop();

  // The memory that a push of this worker names; none when the worker has not shared it.
  std::optional<Loan> borrow(const kvstore::MemberId& worker, const MemoryPlace& place) const;
  // Where this worker can read these values; none when it cannot, or not yet. They must not change
  // until the worker has read them, or until take_back().
  std::optional<MemoryPlace> place_for(const kvstore::MemberId& worker,
                                       std::span<const std::byte> values);
  // A connection of this worker has begun. Takes back what other processes of its name were lent.
  void begins(const kvstore::MemberId& worker);
  // The connection of the worker is over. Called before any of the memory changes.
  void take_back(const kvstore::MemberId& worker);

 private:
  using Exchange = same_host::MemoryServer::Exchange;
  struct SharedMemoryClient {
    Exchange exchange;
    std::shared_ptr<MemoryFile> revocation;
  };
  same_host::MemoryServer::Terms terms();
  void begin_exchange(const kvstore::MemberId& worker, const Exchange& exchange);
  void end_exchange(const kvstore::MemberId& worker);

  net::IoThread thread_;
  same_host::MemoryServer server_;
  // By process, because one with the name of a worker that takes part is here until the servers
  // turn it away.
  std::map<kvstore::MemberId, SharedMemoryClient> clients_;
  std::map<std::string, std::uint64_t> connected_;  // incarnations by worker
};

}  // namespace dpwa::kvserver
