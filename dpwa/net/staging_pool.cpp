#include "dpwa/net/staging_pool.h"

#include <algorithm>

#include "dpwa/base/invariant.h"

namespace dpwa {

std::optional<StagingPool::Lease> StagingPool::lend(std::size_t bytes) {
  thread_.check();
  const auto fits = std::ranges::find_if(
      kept_, [bytes](const AlignedBuffer& buffer) { return buffer.bytes().size() >= bytes; });
  const std::size_t size = fits != kept_.end() ? fits->bytes().size() : bytes;
  if (lent_bytes_ > 0 && lent_bytes_ + size > max_lent_bytes) return std::nullopt;
  AlignedBuffer buffer;
  if (fits != kept_.end()) {
    buffer = std::move(*fits);
    kept_.erase(fits);
    kept_bytes_ -= size;
  } else {
    buffer = AlignedBuffer(size);
  }
  lent_bytes_ += size;
  return Lease(*this, std::move(buffer));
}

void StagingPool::give_back(AlignedBuffer buffer) noexcept {
  const std::size_t size = buffer.bytes().size();
  DPWA_INVARIANT(size <= lent_bytes_, "a buffer that is given back was lent", size, lent_bytes_);
  lent_bytes_ -= size;
  if (kept_bytes_ + size > max_kept_bytes || kept_.size() == max_kept) return;
  kept_bytes_ += size;
  kept_.push_back(std::move(buffer));
}

}  // namespace dpwa
