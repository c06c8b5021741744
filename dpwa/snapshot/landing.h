#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/snapshot_store.h"
#include "interpolation/kernels/codec.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa {

// What the landing buffer holds of the tensors that interpolate: the difference peer - own snapshot
// (delta blend) or the peer's values (lerp blend, full pulls). Other tensors always land as values.
enum class LandingMode { difference, values };

// Where a peer's parameters arrive: checked, decoded and compared with the own snapshot while each
// chunk is hot in cache, ready for the trainer's one blend pass. The model itself is not touched,
// so a pull that fails half way leaves nothing behind. Owned alternately by the Tx thread (begin,
// consume) and the trainer (everything const); the hand-over is the caller's.
class Landing {
 public:
  // Longer landings are not in the cache any more when the trainer comes to read them.
  static constexpr std::size_t stream_from_bytes = std::size_t{16} << 20;

  Landing(const Manifest& manifest,
          const BufferAllocator& allocate);  // the manifest must outlive it

  // `range`: what is about to land; all else in the buffer is left over from before.
  void begin(LandingMode mode, std::shared_ptr<const Snapshot> own, ByteRange range);
  // Begins to bring the own values of `chunk` into the cache; a hint, for up to some KiB.
  void prefetch(ByteRange chunk) const;
  // Bytes [offset, offset + peer.size()) of the peer's snapshot; offset and size are multiples of
  // 64 but for the last piece. Throws nothing; the caller has checked the bounds.
  void consume(std::uint64_t offset, std::span<const std::byte> peer);
  // The same of a chunk as it travels with `codec`; see encoded_chunk.h.
  void consume(Codec codec, ByteRange chunk, std::span<const std::byte> payload);
  // Whether a blend of what has landed, with a factor of at most `scale`, might give a value that
  // its dtype cannot hold, where squared_distance is finite. Only float16 has so few: in the others
  // no such difference reaches from one finite value past the largest one. Before release(). Reads
  // the own float16 values where the distance is large enough to matter.
  bool may_overflow(double scale) const;
  // Lets the own snapshot go, so that its buffer can be reused.
  void release() { own_.reset(); }

  const Manifest& manifest() const { return manifest_; }
  LandingMode mode() const { return mode_; }
  ByteRange range() const { return range_; }
  const kernels::PassStats& stats() const { return stats_; }
  std::span<const std::byte> bytes() const { return buffer_.bytes(); }

 private:
  const Manifest& manifest_;
  AlignedBuffer buffer_;
  const kernels::Stores stores_;
  LandingMode mode_ = LandingMode::difference;
  ByteRange range_;
  std::shared_ptr<const Snapshot> own_;
  kernels::PassStats stats_;
};

}  // namespace dpwa
