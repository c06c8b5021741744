#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "dpwa/net/accept_loop.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/same_host/session.h"
#include "dpwa/net/server_options.h"
#include "dpwa/rules/readers.h"

namespace dpwa::same_host {

// The Rx side for peers of this host. Processes of the same user get the memory of the latest
// snapshot itself, over a Unix socket in the abstract namespace, which leaves nothing behind
// however the process ends. The Server owns it: listen() is called before the thread of the server
// starts, the rest on that thread.
class Listener final : private SessionHost {
 public:
  using Report = std::function<void(const net::Failure& failure, const std::string& address)>;

  // `server_readers`: those of the server, of either path. All outlive this.
  Listener(boost::asio::io_context& io, LocalNode& node, const ServerOptions& server_options,
           Readers& server_readers, Report report);
  ~Listener();

  bool listen();  // false, and logged, when the system does not allow it: nothing is offered then
  const std::string& offer() const { return offer_; }  // for WELCOME
  void serve();                                        // begins to accept
  void stop();  // no new connections; leases get drain_time, idle connections none

 private:
  using Socket = boost::asio::local::stream_protocol::socket;
  void admit(Socket socket);
  void forget(Session& session) override;
  void report(const net::Failure& failure, const std::string& address) override;

  const Report report_;
  net::AcceptLoop<boost::asio::local::stream_protocol> accepts_;
  boost::asio::steady_timer drain_;
  std::string offer_;
  std::list<std::shared_ptr<Session>> sessions_;
};

}  // namespace dpwa::same_host
