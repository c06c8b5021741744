#include "dpwa/net/failure.h"

#include <doctest/doctest.h>

#include <boost/asio/error.hpp>

namespace dpwa::net {
namespace {

using Kind = Failure::Kind;

Failure rejected(wire::RejectCode code) {
  return wire::Reject{code, "why"};
}

}  // namespace

TEST_CASE("system errors, decoding errors and rejects are failures of their kind") {
  const Failure closed = boost::system::error_code(boost::asio::error::eof);
  CHECK(closed.kind == Kind::ended);
  CHECK(closed.detail == "the connection was closed");
  const Failure corrupt = wire::WireError{wire::Fault::bad_checksum, "wrong"};
  CHECK(corrupt.kind == Kind::protocol);
  CHECK(corrupt.detail == "wrong");
  const Failure later = wire::WireError{wire::Fault::bad_version, "version 2"};
  CHECK(later.kind == Kind::version);
  CHECK(later.is_protocol());
  const Failure refused = rejected(wire::RejectCode::cluster);
  CHECK(refused.kind == Kind::rejected);
  CHECK(refused.reject == wire::RejectCode::cluster);
}

TEST_CASE("the rules hear of a failure what they act on") {
  CHECK(verdict_of({Kind::ended, ""}) == PeerFailure::unreachable);
  CHECK(verdict_of({Kind::timed_out, ""}) == PeerFailure::timed_out);
  CHECK(verdict_of({Kind::protocol, ""}) == PeerFailure::protocol);
  CHECK(verdict_of({Kind::version, ""}) == PeerFailure::protocol);
  CHECK(verdict_of({Kind::security, ""}) == PeerFailure::rejected);
  CHECK(verdict_of(rejected(wire::RejectCode::model)) == PeerFailure::rejected);
  CHECK(verdict_of({Kind::busy, ""}) == PeerFailure::busy);
}

TEST_CASE("failures of one kind share a log line, whatever their words, and others do not") {
  CHECK(log_key({Kind::protocol, "a"}) == log_key({Kind::version, "b"}));
  CHECK(log_key({Kind::protocol, "a"}) != log_key({Kind::ended, "a"}));
  CHECK(log_key(rejected(wire::RejectCode::own_name)) ==
        log_key(rejected(wire::RejectCode::unknown_node)));
  CHECK(log_key(rejected(wire::RejectCode::model)) != log_key(rejected(wire::RejectCode::cluster)));
  CHECK(log_key(rejected(wire::RejectCode::security)) != log_key({Kind::security, ""}));
}

}  // namespace dpwa::net
