#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dpwa/net/pull_result.h"
#include "dpwa/net/stream.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// Reads the reply to one PULL: the head, then chunk after chunk, each checked and landed while it
// is hot in cache. After a failure the stream may hold half a reply. Tx thread only.
class ReplyReader {
 public:
  // `staging` holds one chunk at a time; it and the stream outlive the reader.
  ReplyReader(net::Stream& stream, AlignedBuffer& staging) : stream_(stream), staging_(staging) {}

  boost::asio::awaitable<PullResult> receive(PullRequest request, std::uint32_t request_id,
                                             Landing& landing);
  std::uint32_t chunk_bytes() const;  // that the staging buffer has room for
  // Where it has it; free between two replies.
  std::span<std::byte> payload() const;

  // Bytes of reply that come before the first chunk's payload.
  static constexpr std::size_t reply_lead_bytes =
      wire::header_bytes + wire::snapshot_head_bytes + wire::chunk_header_bytes;
  // A staging buffer for chunks of up to `chunk_bytes`.
  static AlignedBuffer make_staging(std::size_t chunk_bytes);

 private:
  boost::asio::awaitable<PullResult> receive_chunks(wire::SnapshotHead head, std::size_t buffered,
                                                    Landing& landing);

  net::Stream& stream_;
  AlignedBuffer& staging_;
};

}  // namespace dpwa
