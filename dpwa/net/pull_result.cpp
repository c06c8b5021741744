#include "dpwa/net/pull_result.h"

#include <utility>

#include "dpwa/rules/staleness.h"

namespace dpwa {

using wire::MessageType;

PullResult failed(PeerFailure failure, std::string detail) {
  PullResult result;
  result.failure = failure;
  result.detail = std::move(detail);
  return result;
}

PullResult failed(const net::Failure& failure) {
  PullResult result = failed(net::verdict_of(failure), failure.detail);
  result.reject = failure.reject;
  return result;
}

PullResult not_wanted(PeerFailure why, const Progress& progress) {
  PullResult result = why == PeerFailure::other_lineage
                          ? failed(why, "descends from other initial weights")
                          : failed(why, words_for_stale(progress.clock));
  result.progress = progress;
  return result;
}

namespace {

PullResult declined_without_fields(PeerFailure failure, std::string detail,
                                   std::span<const std::byte> body) {
  const auto empty = wire::decode_empty(body);
  return empty ? failed(failure, std::move(detail)) : failed(empty.error());
}

}  // namespace

PullResult declined(MessageType type, std::span<const std::byte> body) {
  switch (type) {
    case MessageType::not_ready:
      return declined_without_fields(PeerFailure::not_ready, "has no parameters yet", body);
    case MessageType::not_modified:
      return declined_without_fields(PeerFailure::unchanged, "has published nothing new", body);
    case MessageType::not_fresh:
      return declined_without_fields(PeerFailure::not_fresh,
                                     "has published nothing for longer than usual", body);
    case MessageType::busy:
      return declined_without_fields(PeerFailure::busy, "is busy", body);
    case MessageType::reject: {
      const auto reject = wire::decode_reject(body);
      if (!reject) return failed(reject.error());
      return failed(*reject);
    }
    case MessageType::error: {
      const auto error = wire::decode_error(body);
      return failed(PeerFailure::protocol, error ? error->reason : error.error().detail);
    }
    default:
      return failed(PeerFailure::protocol, "sent a reply that does not belong to a pull");
  }
}

}  // namespace dpwa
