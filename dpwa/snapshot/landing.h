#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "dpwa/base/checksum.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/snapshot_store.h"
#include "interpolation/kernels/codec.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa {

// The content of the landing buffer for tensors that interpolate: the difference peer - own
// snapshot (delta blend) or the values of the peer (lerp blend, full pulls). Other tensors land as
// values.
enum class LandingMode { difference, values };

// The distance between a snapshot and one whose interpolated values within `range` are each one
// step of their dtype away, 2^-7 of the value for bfloat16, 2^-10 for float16: what rounding can do
// to equal models. 0 when a value is not finite. One pass over memory.
double rounding_distance(const Manifest& manifest, std::span<const std::byte> snapshot,
                         ByteRange range);

// The buffer in which a peer's parameters arrive. Each chunk is checked, decoded and compared with
// the own snapshot while it is in the cache; the trainer blends all in one pass. The model itself
// is not touched, so a pull that fails half way has no effect. Owned alternately by the Tx thread
// (begin, consume) and the trainer (everything const); the caller hands it over.
class Landing {
 public:
  // Larger landings are no longer in the cache when the trainer reads them.
  static constexpr std::size_t stream_from_bytes = std::size_t{8} << 20;

  Landing(const Manifest& manifest,
          const BufferAllocator& allocate);  // the manifest must outlive it

  // `range`: what is about to land; the rest of the buffer keeps old contents.
  void begin(LandingMode mode, std::shared_ptr<const Snapshot> own, ByteRange range);
  // Takes bytes [offset, offset + peer.size()) of the peer's snapshot; offset and size are
  // multiples of 64, except for the last piece. `checksum`, if any, takes the bytes in on the way.
  // Throws nothing; the caller has checked the bounds.
  void consume(std::uint64_t offset, std::span<const std::byte> peer, Crc32c* checksum = nullptr);
  // The same for the payload of a chunk that travels with `codec`; see encoded_chunk.h.
  void consume(Codec codec, ByteRange chunk, std::span<const std::byte> payload,
               Crc32c* checksum = nullptr);
  // What comparing gave. A distance from own values that are not finite means nothing: it is NaN.
  // Call it before release(). Reads the own values only when the distance is infinite.
  kernels::PassStats comparison() const;
  // Whether a blend of what has landed, with a factor of at most `scale`, might give a value that
  // its dtype cannot hold, when squared_distance is finite. Only float16 has so small a range: in
  // the other dtypes no such difference leads from a finite value past the largest one. Call it
  // before release(). Reads the own float16 values only if the distance is large enough to matter.
  bool may_overflow(double scale) const;
  // rounding_distance() of the own values. Call it before release().
  double rounding_distance() const;
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
