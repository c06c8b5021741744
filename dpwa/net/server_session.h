#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/connection.h"
#include "dpwa/net/connection_limits.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/name_guard.h"
#include "dpwa/net/other_settings.h"
#include "dpwa/net/request_handler.h"
#include "dpwa/net/server_options.h"
#include "dpwa/session/outgoing.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

class ServerSession;

// The name under which connections of callers other than nodes are counted; no node can have it.
inline constexpr auto observers = "observers of the cluster";

// The state that the sessions of one server share. Rx thread only; outlives them.
class ServerSessionHost {
 public:
  ServerSessionHost(boost::asio::any_io_executor executor, LocalProcess& node,
                    ServerOptions server_options)
      : local(node),
        options(std::move(server_options)),
        name_guard(node),
        other_settings(node.name, node.manifest),
        reading_manifest(std::move(executor)) {}

  // The caller of `session` has introduced itself. False: it has too many connections already.
  virtual bool introduce(const ServerSession& session, bool is_observer) = 0;
  virtual void welcomed(const std::string& peer, std::uint64_t incarnation) = 0;  // a node
  virtual void forget(ServerSession& session) = 0;
  // Where the caller on this connection can have snapshots as memory; empty = nowhere.
  virtual std::string offer_to(const boost::asio::ip::tcp::socket& caller) const = 0;
  // Warns, once a minute for each kind of failure and address.
  virtual void report(const net::Failure& failure, const std::string& address) = 0;

  net::IoThread thread;
  LocalProcess& local;
  ServerOptions options;
  NameGuard name_guard;
  std::vector<std::unique_ptr<RequestHandler>> handlers;
  OtherSettings other_settings;
  net::Turns reading_manifest;  // of a caller: one at a time
  bool stopping = false;

 protected:
  ~ServerSessionHost() = default;
};

// One inbound connection: handshake under a deadline, then requests, each answered by the handler
// of its type and in their order, until the peer leaves, breaks the protocol or misses a reply's
// deadline. Rx thread only.
class ServerSession final : public std::enable_shared_from_this<ServerSession>, private Responder {
 public:
  ServerSession(boost::asio::ip::tcp::socket socket, ServerSessionHost& host);

  void start();
  void close() override;
  bool replying() const { return facts_.phase == ConnectionFacts::Phase::replying; }
  const ConnectionFacts& facts() const { return facts_; }

 private:
  const Requester& requester() const override { return requester_; }
  boost::asio::any_io_executor executor() override { return stream().get_executor(); }
  boost::asio::awaitable<bool> send(std::vector<std::byte> frame) override;
  boost::asio::awaitable<bool> refuse(wire::Reject reject, std::uint32_t request_id) override;
  boost::asio::awaitable<void> begin_reply() override;
  boost::asio::awaitable<bool> write(std::span<const boost::asio::const_buffer> buffers) override;
  boost::asio::awaitable<std::optional<net::Frame>> receive(net::Expected expected) override;
  void end_reply() override;
  session::Outgoing& outgoing() override { return outgoing_; }
  void begin_write() override;
  std::uint64_t received_bytes() override;
  void protocol_error(const std::string& what) override;

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<bool> handshake();
  boost::asio::awaitable<bool> has_own_model(Fingerprint stated, std::uint32_t request_id);
  bool warn_of_settings(const Fingerprint& stated);
  boost::asio::awaitable<bool> welcome(bool is_node, std::uint32_t request_id);
  boost::asio::awaitable<void> serve_requests();
  boost::asio::awaitable<void> write_messages();
  Caller identify(const wire::Hello& hello) const;
  void enter(ConnectionFacts::Phase phase);
  void turned_away(const net::Failure& failure);
  void failed_here(std::exception_ptr failure);

  net::Stream& stream() { return connection_.stream(); }
  const net::Stream& stream() const { return connection_.stream(); }

  net::Connection connection_;
  ServerSessionHost& host_;
  LocalProcess& local_;
  Requester requester_;
  ConnectionFacts facts_;
  std::vector<RequestHandler*> handlers_;  // by message type; null: not asked for here
  net::RequestRate requests_;
  net::Turns writing_;
  session::Outgoing outgoing_;
  boost::asio::steady_timer wake_;  // there is more in outgoing_
  bool writes_messages_ = false;    // its coroutine has begun
};

}  // namespace dpwa
