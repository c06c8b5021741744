#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/admission.h"
#include "dpwa/net/connection_limits.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/same_host/frame_socket.h"
#include "dpwa/net/server_options.h"
#include "dpwa/rules/readers.h"
#include "dpwa/wire/messages.h"

namespace dpwa::same_host {

class Session;

// The state that the sessions of one listener share. Rx thread only; outlives them.
class SessionHost {
 public:
  // All outlive this.
  SessionHost(LocalNode& node, const ServerOptions& server_options, Readers& server_readers)
      : local(node), options(server_options), readers(server_readers) {}

  virtual void forget(Session& session) = 0;
  // Warns, once a minute for each kind of failure and address.
  virtual void report(const net::Failure& failure, const std::string& address) = 0;

  net::IoThread thread;
  LocalNode& local;
  const ServerOptions& options;
  Readers& readers;  // of the server, over TCP and of memory together
  bool stopping = false;

 protected:
  ~SessionHost() = default;
};

// One peer of this host: handshake under a deadline, then pulls, each answered with the memory of
// the latest snapshot. The session holds that snapshot as the reader's lease until the reader
// releases it, its connection ends (as it does when the reader dies), or the lease expires: then
// the buffer may be written again, and the reader finds out by the generation. Rx thread only.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::local::stream_protocol::socket socket, SessionHost& host);

  void start();
  void close();
  bool lending() const { return lending_; }

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<bool> handshake();
  boost::asio::awaitable<bool> answer(net::Frame request);
  boost::asio::awaitable<bool> lend(PullGrant grant, wire::Pull pull, std::uint32_t request_id);
  // A failure: the reader left, or did not release the memory in time.
  boost::asio::awaitable<net::IoResult<wire::Release>> lend_until_released(
      std::vector<std::byte> frame, int descriptor);
  boost::asio::awaitable<bool> send(std::vector<std::byte> frame);
  Caller caller() const;
  void protocol_error(const std::string& what);

  FrameSocket socket_;
  SessionHost& host_;
  LocalNode& local_;
  std::string peer_ = "a process of this host";  // its name, once known
  std::uint64_t incarnation_ = 0;                // of the peer
  std::uint64_t handed_over_ = 0;                // bit b: buffer b was sent on this connection
  bool lending_ = false;
  net::RequestRate requests_;
};

}  // namespace dpwa::same_host
