#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dpwa/net/pull_result.h"
#include "dpwa/net/stream.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// Reads the reply to one PULL: read_head(), then either land(), which checks and lands chunk after
// chunk while each is hot in cache, or nothing more, and the stream is closed. After a failure the
// stream may hold half a reply. Tx thread only.
class ReplyReader {
 public:
  // `staging` holds one chunk at a time. It, the stream and the manifest outlive the reader.
  ReplyReader(net::Stream& stream, const Manifest& manifest, AlignedBuffer& staging)
      : stream_(stream), manifest_(manifest), staging_(staging) {}

  boost::asio::awaitable<PullResult> read_head(PullRequest request, std::uint32_t request_id);
  // At once after read_head(): the staging buffer already holds the first of the parameters.
  boost::asio::awaitable<PullResult> land(Landing& landing);
  const Progress& progress() const { return head_.progress; }  // in the head
  std::uint32_t chunk_bytes() const;  // that the staging buffer has room for
  // Where it has it; free between two replies.
  std::span<std::byte> payload() const;

  // Bytes of reply that come before the first chunk's payload.
  static constexpr std::size_t reply_lead_bytes =
      wire::header_bytes + wire::snapshot_head_bytes + wire::chunk_header_bytes;
  // A staging buffer for chunks of up to `chunk_bytes`.
  static AlignedBuffer make_staging(std::size_t chunk_bytes);

 private:
  net::Stream& stream_;
  const Manifest& manifest_;
  AlignedBuffer& staging_;
  wire::SnapshotReplyHead head_;  // of the reply that is being read
  std::size_t buffered_ = 0;      // bytes of its chunks that came with the head
};

}  // namespace dpwa
