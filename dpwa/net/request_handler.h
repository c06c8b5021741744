#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/net/connection.h"
#include "dpwa/rules/readers.h"
#include "dpwa/session/outgoing.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// The caller of an admitted connection. Constant while the connection lasts.
struct Requester {
  std::string peer;               // its name; empty for an observer
  std::uint64_t incarnation = 0;  // of the peer
  std::string address;            // of the other end, numeric
  std::string network;            // that it calls from (network.h)
  Caller account;                 // that it counts towards
  bool moves_parameters = true;   // false: a node that has not stated its model
  bool may_map = false;           // it is on this host, and was offered the memory of snapshots
};

// The connection that a request came over, as its handler sees it: valid until answer() returns.
// Rx thread only.
class Responder {
 public:
  virtual const Requester& requester() const = 0;
  virtual boost::asio::any_io_executor executor() = 0;

  // Each gives false when the connection is at its end, and so may answer(). send() ends it when
  // the caller has not taken the whole frame within ServerOptions::max_reply_time.
  virtual boost::asio::awaitable<bool> send(std::vector<std::byte> frame) = 0;
  // Always false: the connection ends with this REJECT.
  virtual boost::asio::awaitable<bool> refuse(wire::Reject reject, std::uint32_t request_id) = 0;

  // A reply of several steps, between these two. No other frame is sent meanwhile, and at stop the
  // connection gets the drain time.
  virtual boost::asio::awaitable<void> begin_reply() = 0;
  virtual boost::asio::awaitable<bool> write(
      std::span<const boost::asio::const_buffer> buffers) = 0;
  // The next frame of the caller; none: the connection is at its end.
  virtual boost::asio::awaitable<std::optional<net::Frame>> receive(net::Expected expected) = 0;
  virtual void end_reply() = 0;

  // Messages of the store for the caller. The session writes them by itself, between other frames:
  // begin_write() when one was added. They are lost when the connection ends.
  virtual session::Outgoing& outgoing() = 0;
  virtual void begin_write() = 0;

  virtual std::uint64_t received_bytes() = 0;  // by the kernel, since the connection began
  virtual void protocol_error(const std::string& what) = 0;  // is counted and logged
  virtual void close() = 0;

 protected:
  ~Responder() = default;
};

// Answers the requests of some message types, on all connections of a server. The session does the
// rest: handshake, TLS, limits, rates, frames, deadlines. Rx thread only; outlives the sessions.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  // The requests that this caller may make, each type with its longest body: asked once for each
  // connection. No type belongs to two handlers of a server; numbers are below TypeSet::numbers.
  virtual std::vector<wire::TypeBound> requests(const Requester& requester) const = 0;

  // True: its requests come many at a time, so that they are read ahead.
  virtual bool in_numbers() const { return false; }

  // Takes a request that has to wait for nothing, in place of answer() and with its result; none:
  // answer() takes it. A coroutine for each request would cost more than many of them do.
  virtual std::optional<bool> take_at_once(net::Frame&, Responder&) { return std::nullopt; }

  // False: the connection ends. An exception ends it too, and is logged.
  virtual boost::asio::awaitable<bool> answer(net::Frame request, Responder& responder) = 0;

  // The connection is over: nothing of it may be used any more.
  virtual void connection_closed(const Responder&) {}
};

}  // namespace dpwa
