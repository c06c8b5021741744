#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dpwa/net/io_thread.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {

// Buffers for the chunks of encoded replies, one a reply: lent while it is sent, kept for the next
// one. The pool bounds the memory of all callers together. Rx thread only; outlives its leases.
class StagingPool {
 public:
  // Lent at once, unless a single buffer is larger.
  static constexpr std::size_t max_lent_bytes = std::size_t{16} << 20;
  // Kept between replies.
  static constexpr std::size_t max_kept = 8;
  static constexpr std::size_t max_kept_bytes = std::size_t{2} << 20;

  class Lease {
   public:
    Lease(StagingPool& pool, AlignedBuffer buffer) : pool_(&pool), buffer_(std::move(buffer)) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(buffer_, other.buffer_);
      return *this;
    }
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(std::move(buffer_));
    }
    std::span<std::byte> bytes() { return buffer_.bytes(); }

   private:
    StagingPool* pool_;
    AlignedBuffer buffer_;
  };

  StagingPool() { kept_.reserve(max_kept); }

  // A buffer of at least `bytes`; none while too much is lent. Throws std::bad_alloc.
  std::optional<Lease> lend(std::size_t bytes);

  std::size_t lent_bytes() const { return lent_bytes_; }
  std::size_t kept_bytes() const { return kept_bytes_; }  // for tests

 private:
  void give_back(AlignedBuffer buffer) noexcept;

  net::IoThread thread_;
  std::vector<AlignedBuffer> kept_;
  std::size_t kept_bytes_ = 0;
  std::size_t lent_bytes_ = 0;
};

}  // namespace dpwa
