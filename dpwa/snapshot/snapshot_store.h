#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/rules/progress.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {

// A node's parameters at one moment: immutable after publish, shared by its readers. The last
// reader that releases it returns the buffer to the store.
class Snapshot {
 public:
  const Progress& progress() const { return progress_; }
  std::span<const std::byte> bytes() const { return buffer_.bytes(); }

  // CRC32C of bytes [offset, offset + length), computed by the first caller that asks and kept when
  // it is one of the store's chunks (the last one may be shorter). Any thread.
  std::uint32_t chunk_checksum(std::size_t offset, std::size_t length) const;

  // The memory as other processes of this host can map it; null when they cannot.
  const MemoryFile* file() const { return buffer_.file(); }
  std::uint32_t buffer() const { return index_; }  // which of the store's buffers: 0, 1, ...

 private:
  friend class SnapshotStore;
  Snapshot(AlignedBuffer buffer, std::uint32_t index, std::size_t chunk_bytes);

  AlignedBuffer buffer_;
  const std::uint32_t index_;
  Progress progress_;
  const std::size_t chunk_bytes_;
  // A chunk's length << 32 | checksum; 0 = not computed.
  mutable std::vector<std::atomic<std::uint64_t>> checksums_;
};

// A fixed pool of snapshot buffers. One thread (the trainer) fills a free buffer and swaps it in;
// any thread takes the latest. Publishing never waits for a reader and a reader never sees a torn
// snapshot: when readers hold every other buffer, begin() gives none and counts a skipped publish.
class SnapshotStore {
 public:
  // Three are enough: the published one, the one that an own pull compares with, and a free one.
  static constexpr std::size_t default_buffers = 3;
  static constexpr std::size_t max_buffers = 64;

  // `chunk_bytes`: the unit in which snapshots are sent and checksummed.
  SnapshotStore(std::size_t bytes, std::size_t chunk_bytes, const BufferAllocator& allocate,
                std::size_t buffers = default_buffers);
  ~SnapshotStore();
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;

  // A buffer to fill, exclusively owned until published or destroyed unpublished.
  class Writer {
   public:
    std::span<std::byte> bytes() { return snapshot_->buffer_.bytes(); }

   private:
    friend class SnapshotStore;
    explicit Writer(std::shared_ptr<Snapshot> snapshot) : snapshot_(std::move(snapshot)) {}
    std::shared_ptr<Snapshot> snapshot_;
  };

  std::optional<Writer> begin();      // of a step
  std::optional<Writer> try_begin();  // by one who tries again, which is no skipped publish
  void publish(Writer writer, const Progress& progress);  // swaps the filled buffer in

  std::shared_ptr<const Snapshot> latest() const;  // null before the first publish
  Progress progress() const;  // of the latest; version 0 before the first. Holds no buffer
  std::uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }
  // The buffers by number, as other processes of this host can map them; none where they cannot.
  const std::vector<const MemoryFile*>& files() const { return files_; }

 private:
  class Pool;
  std::shared_ptr<Pool> pool_;  // outlives the store while readers hold snapshots
  mutable Mutex latest_mutex_;  // held for a pointer copy only
  std::shared_ptr<const Snapshot> latest_ DPWA_GUARDED_BY(latest_mutex_);
  std::atomic<std::uint64_t> skipped_{0};
  std::vector<const MemoryFile*> files_;  // constant once constructed
};

}  // namespace dpwa
