#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dpwa/net/connection.h"
#include "dpwa/net/pull_result.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// Reads the reply to one PULL: take_head(), then either land(), which checks and lands chunk after
// chunk while each is hot in cache, or nothing more, and the connection is closed. After a failure
// half a reply may be on its way. Tx thread only.
class ReplyReader {
 public:
  // `staging` holds one chunk at a time. It, the connection and the manifest outlive the reader.
  ReplyReader(net::Connection& connection, const Manifest& manifest, AlignedBuffer& staging)
      : connection_(connection), manifest_(manifest), staging_(staging) {}

  // The answers to a PULL, and the longest body of a SNAPSHOT among them.
  static wire::TypeSet answers();
  static std::uint64_t most_snapshot_bytes(const PullRequest& request);
  PullResult take_head(const PullRequest& request, const net::Frame& reply);
  boost::asio::awaitable<PullResult> land(Landing& landing);
  const Progress& progress() const { return head_.progress; }  // in the head
  std::uint32_t chunk_bytes() const;  // that the staging buffer has room for
  // Where it has it; free between two replies.
  std::span<std::byte> payload() const;

  // A staging buffer for chunks of up to `chunk_bytes`.
  static AlignedBuffer make_staging(std::size_t chunk_bytes);

 private:
  net::Connection& connection_;
  const Manifest& manifest_;
  AlignedBuffer& staging_;
  wire::SnapshotReplyHead head_;  // of the reply that is being read
};

}  // namespace dpwa
