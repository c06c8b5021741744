#include "dpwa/snapshot/landing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/snapshot/encoded_chunk.h"
#include "dpwa/snapshot/finite.h"
#include "interpolation/kernels/checked_landing.h"
#include "interpolation/kernels/dtype.h"
#include "interpolation/kernels/encoding.h"
#include "interpolation/kernels/portions.h"

namespace dpwa {
namespace {

constexpr double largest_float16 = 65504;
// Less than this is rounded away beside the largest value.
constexpr double float16_half_step = 16;
// The model keeps changing between the own snapshot and the blend.
constexpr double blend_limit = largest_float16 * 7 / 8;

double float16_magnitude(std::uint16_t bits) {
  const int exponent = bits >> 10;
  const int mantissa = bits & 0x3FF;
  return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
}

// The largest magnitude of finite or infinite values, infinity as 65536.
double largest_magnitude(std::span<const std::byte> float16_values) {
  std::uint16_t largest = 0;
  for (std::size_t at = 0; at + 2 <= float16_values.size(); at += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &float16_values[at], sizeof bits);
    largest = std::max<std::uint16_t>(largest, bits & 0x7FFF);
  }
  return float16_magnitude(largest);
}

// From 1 to the next larger value.
double step_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float64:
      return 0x1p-52;
    default:
      return 0x1p-23;
  }
}

// Several sums at once, which the compiler keeps in one register.
template <class Value>
double sum_of_squares(std::span<const std::byte> values) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  const std::size_t count = values.size() / sizeof(Value);
  for (std::size_t i = 0; i < count; ++i) {
    Value value;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    sums[i % lanes] += static_cast<double>(value) * static_cast<double>(value);
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

double sum_of_squares(DType dtype, std::span<const std::byte> values) {
  if (dtype == DType::float64) return sum_of_squares<double>(values);
  const std::size_t each = size_of(dtype);
  kernels::FloatPortion portion;
  double sum = 0;
  kernels::for_each_portion(values.size() / each, [&](std::size_t from, std::size_t count) {
    sum += sum_of_squares<float>(portion.widen(dtype, values.data() + from * each, count));
  });
  return sum;
}

}  // namespace

double rounding_distance(const Manifest& manifest, std::span<const std::byte> snapshot,
                         ByteRange range) {
  double squares = 0;
  for (const Region& region : manifest.regions()) {
    const ByteRange piece = overlap(region.range(), range);
    if (region.rule != BlendRule::interpolate || piece.length == 0) continue;
    const double step = step_of(region.dtype);
    squares +=
        step * step * sum_of_squares(region.dtype, snapshot.subspan(piece.offset, piece.length));
  }
  return std::isfinite(squares) ? std::sqrt(squares) : 0;
}

Landing::Landing(const Manifest& manifest, const BufferAllocator& allocate)
    : manifest_(manifest),
      buffer_(allocate(manifest.total_bytes())),
      stores_(manifest.total_bytes() < stream_from_bytes ? kernels::Stores::cached
                                                         : kernels::Stores::streaming) {
  DPWA_INVARIANT(buffer_.bytes().size() == manifest.total_bytes(),
                 "the landing buffer has room for the whole model", buffer_.bytes().size(),
                 manifest.total_bytes());
}

void Landing::begin(LandingMode mode, std::shared_ptr<const Snapshot> own, ByteRange range) {
  DPWA_INVARIANT(range.end() <= manifest_.total_bytes(), "what lands is a part of the model",
                 range.offset, range.length, manifest_.total_bytes());
  DPWA_INVARIANT(!own || own->bytes().size() == buffer_.bytes().size(),
                 "what lands is compared with a snapshot of the same model", own->bytes().size(),
                 buffer_.bytes().size());
  mode_ = mode;
  range_ = range;
  own_ = std::move(own);
  stats_ = {};
}

kernels::PassStats Landing::comparison() const {
  kernels::PassStats stats = stats_;
  if (!stats.finite || !std::isinf(stats.squared_distance)) return stats;
  if (first_not_finite(manifest_, own_->bytes(), range_) != nullptr)
    stats.squared_distance = std::numeric_limits<double>::quiet_NaN();
  return stats;
}

bool Landing::may_overflow(double scale) const {
  const double reach = scale * std::sqrt(stats_.squared_distance);
  if (own_ == nullptr || !(reach >= float16_half_step)) return false;
  return std::ranges::any_of(manifest_.regions(), [&](const Region& region) {
    const ByteRange piece = overlap(region.range(), range_);
    if (region.dtype != DType::float16 || region.rule != BlendRule::interpolate) return false;
    const auto own = own_->bytes().subspan(piece.offset, piece.length);
    return piece.length > 0 && largest_magnitude(own) + reach > blend_limit;
  });
}

double Landing::rounding_distance() const {
  return own_ == nullptr ? 0 : dpwa::rounding_distance(manifest_, own_->bytes(), range_);
}

void Landing::consume(std::uint64_t offset, std::span<const std::byte> peer, Crc32c* checksum) {
  consume(Codec::raw, {offset, peer.size()}, peer, checksum);
}

void Landing::consume(Codec codec, ByteRange chunk, std::span<const std::byte> payload,
                      Crc32c* checksum) {
  DPWA_INVARIANT(overlap(chunk, range_) == chunk, "a chunk is of the range that lands",
                 chunk.offset, chunk.length, range_.offset, range_.length);
  std::uint64_t checked = 0;  // of the payload
  const auto check_up_to = [&](std::uint64_t end) {
    if (checksum != nullptr) checksum->update(payload.subspan(checked, end - checked));
    checked = end;
  };
  for_each_piece(manifest_, codec, chunk, [&](const ChunkPiece& piece) {
    DPWA_INVARIANT(piece.payload.end() <= payload.size(), "a chunk has its whole payload",
                   piece.payload.offset, piece.payload.length, payload.size());
    const DType dtype = piece.region->dtype;
    const auto source = payload.subspan(piece.payload.offset, piece.payload.length);
    const auto target = buffer_.bytes().subspan(piece.range.offset, piece.range.length);
    if (piece.region->rule != BlendRule::interpolate) {
      std::memcpy(target.data(), source.data(), source.size());
      return;
    }
    DPWA_INVARIANT(own_ != nullptr, "what lands is compared with the own snapshot", mode_);
    const auto own = own_->bytes().subspan(piece.range.offset, piece.range.length);
    const bool difference = mode_ == LandingMode::difference;
    if (piece.encoded) {
      stats_ += difference
                    ? kernels::land_encoded_difference(dtype, codec, target, source, own, stores_)
                    : kernels::land_encoded_copy(dtype, codec, target, source, own);
    } else if (difference && checksum != nullptr && kernels::checks_while_landing(dtype)) {
      check_up_to(piece.payload.offset);
      stats_ +=
          kernels::land_difference_checked(dtype, target, source, own, stores_, checksum->state());
      checked = piece.payload.end();
    } else {
      stats_ += difference ? kernels::land_difference(dtype, target, source, own, stores_)
                           : kernels::land_copy(dtype, target, source, own);
    }
  });
  check_up_to(payload.size());
}

}  // namespace dpwa
