#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/net/accept_loop.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/same_host/memory_exchange.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::kvserver {

// Memory that a server and workers of the same host and user read from one another, beside their
// connections: gradients where the worker has them, values where the server has them. It is handed
// over through a Unix socket, whose name a worker learns from WELCOME. Rx thread only, but for
// listen() before it runs.
class SharedMemoryServer {
 public:
  SharedMemoryServer(boost::asio::io_context& io, LocalProcess& local);

  bool listen();  // false, and logged, when the system does not allow it
  const std::string& offer() const { return offer_; }
  void serve();
  void stop();

  // The memory that a push of this worker names; none when the worker has not shared it.
  struct Borrowed {
    std::span<const std::byte> bytes;
    kvstore::Loan loan;
  };
  std::optional<Borrowed> borrow(const kvstore::MemberId& worker,
                                 const kvstore::MemoryPlace& place) const;
  // Where this worker can read these values; none when it cannot, or not yet. They must not change
  // until the worker has read them, or until take_back().
  std::optional<kvstore::MemoryPlace> place_for(const kvstore::MemberId& worker,
                                                std::span<const std::byte> values);
  // A connection of this worker has begun. Takes back what other processes of its name were lent.
  void begins(const kvstore::MemberId& worker);
  // The connection of the worker is over. Called before any of the memory changes.
  void take_back(const kvstore::MemberId& worker);

 private:
  using Socket = boost::asio::local::stream_protocol::socket;
  struct SharedMemoryClient {
    std::shared_ptr<same_host::MemoryExchange> exchange;
    std::shared_ptr<MemoryFile> revocation;
  };
  void admit(Socket socket);
  void end_exchange(const kvstore::MemberId& worker);
  boost::asio::awaitable<void> receive(std::shared_ptr<same_host::MemoryExchange> exchange);

  net::IoThread thread_;
  boost::asio::io_context& io_;
  LocalProcess& local_;
  net::AcceptLoop<boost::asio::local::stream_protocol> accepts_;
  std::string offer_;
  // By process, because one with the name of a worker that takes part is here until the servers
  // turn it away.
  std::map<kvstore::MemberId, SharedMemoryClient> clients_;
  std::map<std::string, std::uint64_t> connected_;  // incarnations by worker
  std::vector<std::weak_ptr<same_host::MemoryExchange>> exchanges_;
  bool stopped_ = false;
};

}  // namespace dpwa::kvserver
