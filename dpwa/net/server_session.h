#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/net/connection_limits.h"
#include "dpwa/net/frame_io.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/request_rate.h"
#include "dpwa/net/served_chunks.h"
#include "dpwa/rules/readers.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

class Server;

// What callers that are no nodes are called where connections are counted: no name of a node.
inline const std::string observers = "observers of the cluster";

// One inbound connection: handshake under a deadline, then requests until the peer leaves, breaks
// the protocol or misses a reply's deadline. Rx thread only.
class ServerSession : public std::enable_shared_from_this<ServerSession> {
 public:
  ServerSession(boost::asio::ip::tcp::socket socket, Server& server);

  void start();
  void close();
  bool replying() const { return facts_.phase == ConnectionFacts::Phase::replying; }
  const ConnectionFacts& facts() const { return facts_; }

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<bool> handshake();
  boost::asio::awaitable<bool> explain_model(std::uint32_t request_id);
  boost::asio::awaitable<bool> answer(net::Frame request);
  boost::asio::awaitable<bool> answer_members(net::Frame request);
  // Whether the caller may bear its name; if not, the connection ends.
  boost::asio::awaitable<bool> bears_its_name(std::uint32_t request_id);
  boost::asio::awaitable<bool> answer_pull(const wire::Pull& pull, std::uint32_t request_id);
  boost::asio::awaitable<bool> send_snapshot(ServedChunks chunks, wire::SnapshotHead head,
                                             std::uint32_t request_id);
  boost::asio::awaitable<bool> send(std::vector<std::byte> frame);
  boost::asio::awaitable<bool> refuse(wire::Reject reject, std::uint32_t request_id);
  TimePoint after(Duration time) const { return std::chrono::steady_clock::now() + time; }
  Caller identify(const wire::Hello& hello) const;
  // Calls itself a node of the cluster file, and does not call from where the file has that node.
  bool borrows_name() const;
  void enter(ConnectionFacts::Phase phase);
  void turned_away(const net::IoFailure& failure);
  void protocol_error(const std::string& what);

  net::Stream stream_;
  Server& server_;
  LocalNode& local_;
  std::string address_;            // of the other end
  std::string peer_;               // empty for an observer
  std::uint64_t incarnation_ = 0;  // of the peer
  Caller caller_;                  // who it counts as, once it has introduced itself
  ConnectionFacts facts_;
  net::RequestRate requests_;
};

}  // namespace dpwa
