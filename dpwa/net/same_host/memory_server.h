#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/net/accept_loop.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/same_host/memory_exchange.h"

namespace dpwa::same_host {

// Where processes of this host and user exchange memory with this one: a Unix socket in the
// abstract namespace, which leaves nothing behind however the process ends. Its name is in WELCOME
// over TCP, where a refusal is explained at length. listen() is called before the thread of the
// io_context starts, the rest on that thread; outlives the run of the io_context.
class MemoryServer {
 public:
  using Peer = kvstore::MemberId;
  using Exchange = std::shared_ptr<MemoryExchange>;
  struct Terms {
    std::string subsystem;  // of the log
    std::string callers;    // in the log: who they are
    std::size_t most_connections = 0;
    Duration handshake_time{};
    std::function<void(const net::Failure& failure, const std::string& address)> report;
    // The peer has introduced itself: its first files are to be shared.
    std::function<void(const Peer& peer, const Exchange& exchange)> begins;
    // The connection of that peer has ended.
    std::function<void(const Peer& peer, const Exchange& exchange, const std::string& why)> ends;
  };

  // `local` outlives this.
  MemoryServer(boost::asio::io_context& io, LocalProcess& local, Terms terms);

  bool listen();  // false, and logged, when the system does not allow it: nothing is offered then
  const std::string& offer() const { return offer_; }  // for WELCOME
  void serve();                                        // begins to accept
  void stop();                                         // ends all connections

 private:
  void admit(MemoryExchange::Socket socket);
  boost::asio::awaitable<void> serve(Exchange exchange);
  boost::asio::awaitable<std::optional<Peer>> handshake(MemoryExchange& exchange);
  void failed(const net::Failure& failure, const std::string& peer);

  net::IoThread thread_;
  boost::asio::io_context& io_;
  LocalProcess& local_;
  const Terms terms_;
  net::AcceptLoop<boost::asio::local::stream_protocol> accepts_;
  std::string offer_;
  std::list<Exchange> exchanges_;
  bool stopped_ = false;
};

}  // namespace dpwa::same_host
