#include "dpwa/net/chunk_intake.h"

#include <algorithm>

namespace dpwa {
namespace {

constexpr std::size_t part_bytes = std::size_t{8} << 10;
constexpr std::size_t line_bytes = 64;  // no element crosses such a boundary

}  // namespace

ChunkIntake::ChunkIntake(Landing& landing, Codec codec, ByteRange chunk,
                         std::span<const std::byte> payload, bool checked)
    : landing_(landing), codec_(codec), chunk_(chunk), payload_(payload), checked_(checked) {}

void ChunkIntake::arrived(std::size_t bytes) {
  const bool whole = bytes == payload_.size();
  if (codec_ != Codec::raw) {
    if (!whole || taken_ == bytes) return;
    if (checked_) checksum_.update(payload_);
    landing_.consume(codec_, chunk_, payload_);
    taken_ = bytes;
    return;
  }
  const std::size_t usable = whole ? bytes : bytes / line_bytes * line_bytes;
  while (taken_ < usable) {
    const auto part = payload_.subspan(taken_, std::min(part_bytes, usable - taken_));
    landing_.prefetch({chunk_.offset + taken_, part.size()});
    if (checked_) checksum_.update(part);
    landing_.consume(chunk_.offset + taken_, part);
    taken_ += part.size();
  }
}

}  // namespace dpwa
