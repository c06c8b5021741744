#include "dpwa/net/failure.h"

#include <boost/asio/error.hpp>
#include <new>

namespace dpwa::net {

Failure::Failure(const boost::system::error_code& error)
    : detail(error == boost::asio::error::eof ? "the connection was closed" : error.message()),
      nobody_listens(error == boost::asio::error::connection_refused) {}

Failure::Failure(const wire::WireError& error)
    : kind(error.fault == wire::Fault::bad_version ? Kind::version : Kind::protocol),
      detail(error.detail) {}

Failure::Failure(const wire::Reject& rejected)
    : kind(Kind::rejected), detail(rejected.reason), reject(rejected.code) {}

std::optional<Failure> internal_failure(std::exception_ptr failure) {
  if (!failure) return std::nullopt;
  try {
    std::rethrow_exception(std::move(failure));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return Failure(Failure::Kind::internal, error.what());
  }
}

PeerFailure verdict_of(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::timed_out:
      return PeerFailure::timed_out;
    case Failure::Kind::protocol:
    case Failure::Kind::version:
      return PeerFailure::protocol;
    case Failure::Kind::security:
    case Failure::Kind::rejected:
      return PeerFailure::rejected;
    case Failure::Kind::busy:
      return PeerFailure::busy;
    default:
      return PeerFailure::unreachable;
  }
}

std::string log_key(const Failure& failure) {
  auto kind = failure.kind;
  if (kind == Failure::Kind::version) kind = Failure::Kind::protocol;
  std::string key = std::to_string(static_cast<int>(kind));
  if (!failure.reject) return key;
  const bool of_name = *failure.reject == wire::RejectCode::own_name;
  const auto code = of_name ? wire::RejectCode::unknown_node : *failure.reject;
  return key + '.' + std::to_string(static_cast<int>(code));
}

}  // namespace dpwa::net
