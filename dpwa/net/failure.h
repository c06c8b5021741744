#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "dpwa/rules/peer_table.h"
#include "dpwa/wire/messages.h"

namespace dpwa::net {

// Why something on the network did not work out, on either side of a connection: the one failure
// value of this layer. System errors, decoding errors and REJECT convert to it where they appear;
// the rules are told by verdict_of(), the log by log_key().
struct Failure {
  enum class Kind {
    ended,      // the stream could not be made, broke, or was closed
    timed_out,  // no answer within the deadline
    protocol,   // bytes arrived that are no valid message
    version,    // the same: a frame of another protocol version
    security,   // one end does not accept the other's proof of identity
    rejected,   // a REJECT was sent or received, or another node answers than was asked for
    busy,       // as many requests are outstanding as one connection may have
    limit,      // a bound on inbound connections
    user,       // a process of another user of this host
    accept,     // no connection could be accepted
    internal,   // serving it failed on this side
  };

  Failure() = default;
  Failure(Kind why, std::string what, std::optional<wire::RejectCode> code = std::nullopt)
      : kind(why), detail(std::move(what)), reject(code) {}
  Failure(const boost::system::error_code& error);  // NOLINT: of a stream; converts
  Failure(const wire::WireError& error);            // NOLINT: of what arrived; converts
  Failure(const wire::Reject& reject);              // NOLINT: converts

  bool is_protocol() const { return kind == Kind::protocol || kind == Kind::version; }

  Kind kind = Kind::ended;
  std::string detail;                      // one line for the log
  std::optional<wire::RejectCode> reject;  // of Kind::rejected, where there was a REJECT
  bool nobody_listens = false;             // the host answered that no process does at this port
};

template <typename T>
using IoResult = boost::system::result<T, Failure>;

// The failure of a coroutine of this side; none if it did not fail. A std::bad_alloc is passed on
// to run_io().
std::optional<Failure> internal_failure(std::exception_ptr failure);

// The failure to report to the peer table.
PeerFailure verdict_of(const Failure& failure);

// Failures with one key share the log's one line a minute and address. So a kind that any caller
// can cause never hides another kind.
std::string log_key(const Failure& failure);

}  // namespace dpwa::net
