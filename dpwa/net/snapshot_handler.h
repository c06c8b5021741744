#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/net/admission.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/request_handler.h"
#include "dpwa/net/server_options.h"
#include "dpwa/net/staging_pool.h"
#include "dpwa/rules/readers.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/snapshot_store.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

// The chunks of one reply: straight from the snapshot's memory with the raw codec, else encoded one
// at a time into a staging buffer and checksummed while hot in cache. Holds the snapshot. Rx thread
// only.
class ServedChunks {
 public:
  // `staging`: for codecs other than raw, of at least the largest chunk's length. Without
  // `checksums` they are 0.
  ServedChunks(const Manifest& manifest, std::shared_ptr<const Snapshot> snapshot, Codec codec,
               bool checksums, std::optional<StagingPool::Lease> staging);

  struct Chunk {
    std::span<const std::byte> payload;  // until the next call
    std::uint32_t crc = 0;
  };
  Chunk get(ByteRange chunk);

 private:
  const Manifest& manifest_;
  const std::shared_ptr<const Snapshot> snapshot_;
  const Codec codec_;
  const bool checksums_;
  std::optional<StagingPool::Lease> staging_;
};

// PULL: the latest snapshot, straight from its memory or encoded chunk by chunk; or, for a caller
// of this host that has mapped the memory, where in it the snapshot lies. A slow reader holds its
// own coroutine and one snapshot buffer until the deadline that it stated, and delays no other
// caller.
class SnapshotHandler : public RequestHandler {
 public:
  // `readers`: those of the server, over TCP and of memory together.
  SnapshotHandler(LocalNode& local, const ServerOptions& options, Readers& readers)
      : local_(local), options_(options), readers_(readers) {}

  std::vector<wire::TypeBound> requests(const Requester& requester) const override;
  boost::asio::awaitable<bool> answer(net::Frame request, Responder& responder) override;

 private:
  boost::asio::awaitable<bool> send(ServedChunks chunks, wire::SnapshotReplyHead head,
                                    std::uint32_t request_id, Responder& responder);
  // Lends the memory of the snapshot until the caller releases it, or the connection ends, as it
  // does when the caller dies and when the lease expires: then the buffer may be written again, and
  // the caller finds out by the generation. None: it was not released.
  boost::asio::awaitable<std::optional<wire::Release>> lend(const PullGrant& grant,
                                                            std::uint32_t request_id,
                                                            Responder& responder);

  LocalNode& local_;
  const ServerOptions& options_;
  Readers& readers_;
  StagingPool staging_;
};

}  // namespace dpwa
