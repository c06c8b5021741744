#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "dpwa/base/time.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/stream.h"
#include "dpwa/session/incoming.h"
#include "dpwa/session/outgoing.h"

namespace dpwa::net {

using session::Expected;
using session::Frame;
using session::Incoming;
using wire::TypeSet;
template <typename... Types>
constexpr TypeSet types(Types... type) {
  return TypeSet(type...);
}

// Reads once, as much as `incoming` wants. None: done.
boost::asio::awaitable<std::optional<Failure>> read_into(ByteSource& source, Incoming& incoming);
// Reads one frame. After a failure nothing more can be read before the next connection.
boost::asio::awaitable<IoResult<Frame>> receive(ByteSource& source, Incoming& incoming,
                                                Expected expected);

// A stream with its session: one connection between two nodes, as frames. After a failure it is to
// be closed. One thread.
class Connection {
 public:
  // What is read ahead of a caller that is not admitted yet.
  static constexpr std::size_t usual_ahead_bytes = 512;
  // Of the messages of the store: many short ones come with one system call.
  static constexpr std::size_t store_ahead_bytes = std::size_t{32} << 10;

  template <typename Origin>  // of its stream
  explicit Connection(Origin&& origin, Incoming::Target target = nullptr)
      : stream_(std::forward<Origin>(origin)), incoming_(usual_ahead_bytes, std::move(target)) {}

  Stream& stream() { return stream_; }
  const Stream& stream() const { return stream_; }
  Incoming& incoming() { return incoming_; }
  const Incoming& incoming() const { return incoming_; }

  boost::asio::awaitable<IoResult<Frame>> receive(Expected expected);
  boost::asio::awaitable<std::optional<Failure>> send(std::vector<std::byte> frame);

  bool is_open() const { return stream_.is_open(); }
  // Ends what is pending, which then fails. What was read ahead is lost.
  void close() { stream_.close(); }

 private:
  Stream stream_;
  Incoming incoming_;
};

// How the messages of a session are written.
struct WriteRules {
  Duration least_time{};   // for what leaves together, beside the time of its bytes
  Turns* turns = nullptr;  // of all that write to the stream; null: nothing else does
  std::function<void()> before = nullptr;  // something is to be staged
  session::Outgoing::Form form = nullptr;
  std::function<void()> staged = nullptr;
  std::function<void(bool whole)> after = nullptr;  // nothing is staged any more
  std::function<void(std::size_t bytes, Duration time)> late = nullptr;  // the deadline has passed
};

// Writes what waits, as soon as it waits, until the stream is closed; closes it when a write fails
// or takes too long. `wake` is cancelled when there is more to write, or the stream is closed. One
// at a time.
boost::asio::awaitable<void> write_waiting(Stream& stream, session::Outgoing& outgoing,
                                           boost::asio::steady_timer& wake,
                                           const WriteRules& rules);

}  // namespace dpwa::net
