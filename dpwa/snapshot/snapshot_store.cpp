#include "dpwa/snapshot/snapshot_store.h"

#include <algorithm>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/base/invariant.h"
#include "dpwa/base/threads.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa {

Snapshot::Snapshot(AlignedBuffer buffer, std::uint32_t index, std::size_t chunk_bytes)
    : buffer_(std::move(buffer)),
      index_(index),
      chunk_bytes_(chunk_bytes),
      checksums_((buffer_.bytes().size() + chunk_bytes - 1) / chunk_bytes) {}

std::uint32_t Snapshot::chunk_checksum(std::size_t offset, std::size_t length) const {
  DPWA_INVARIANT(offset <= bytes().size() && length <= bytes().size() - offset,
                 "a checksum is of bytes of the snapshot", offset, length, bytes().size());
  const auto chunk = bytes().subspan(offset, length);
  if (offset % chunk_bytes_ != 0 || length > chunk_bytes_ || length == 0) return crc32c(chunk);
  auto& slot = checksums_[offset / chunk_bytes_];
  const std::uint64_t known = slot.load(std::memory_order_relaxed);
  if (known >> 32 == length) return static_cast<std::uint32_t>(known);
  const std::uint32_t checksum = crc32c(chunk);
  slot.store(std::uint64_t{length} << 32 | checksum, std::memory_order_relaxed);
  return checksum;
}

// Owns every buffer that is not in use.
class SnapshotStore::Pool {
 public:
  void add(std::unique_ptr<Snapshot> snapshot) {
    const MutexLock lock(mutex_);
    free_.push_back(std::move(snapshot));
  }
  std::unique_ptr<Snapshot> take() {
    const MutexLock lock(mutex_);
    if (free_.empty()) return nullptr;
    auto snapshot = std::move(free_.back());
    free_.pop_back();
    return snapshot;
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Snapshot>> free_ DPWA_GUARDED_BY(mutex_);
};

SnapshotStore::SnapshotStore(std::size_t bytes, std::size_t chunk_bytes,
                             const BufferAllocator& allocate, std::size_t buffers)
    : pool_(std::make_shared<Pool>()) {
  DPWA_INVARIANT(buffers >= 2 && buffers <= max_buffers, "a store has a number of buffers",
                 buffers);
  for (std::uint32_t i = 0; i < buffers; ++i) {
    auto snapshot = std::unique_ptr<Snapshot>(new Snapshot(allocate(bytes), i, chunk_bytes));
    DPWA_INVARIANT(snapshot->bytes().size() == bytes, "a buffer has room for the whole model",
                   snapshot->bytes().size(), bytes);
    files_.push_back(snapshot->file());
    pool_->add(std::move(snapshot));
  }
  if (std::ranges::find(files_, nullptr) != files_.end()) files_.clear();
}

SnapshotStore::~SnapshotStore() = default;

std::optional<SnapshotStore::Writer> SnapshotStore::begin() {
  auto writer = try_begin();
  if (!writer) skipped_.fetch_add(1, std::memory_order_relaxed);
  return writer;
}

std::optional<SnapshotStore::Writer> SnapshotStore::try_begin() {
  auto snapshot = pool_->take();
  if (snapshot == nullptr) return std::nullopt;
  if (MemoryFile* file = snapshot->buffer_.file()) file->begin_write();
  auto give_back = [pool = pool_](Snapshot* returned) {
    pool->add(std::unique_ptr<Snapshot>(returned));
  };
  return Writer(std::shared_ptr<Snapshot>(snapshot.release(), std::move(give_back)));
}

void SnapshotStore::publish(Writer writer, const Progress& progress) {
  DPWA_INVARIANT(writer.snapshot_ != nullptr, "a buffer is published once", progress.version);
  Snapshot& snapshot = *writer.snapshot_;
  if (MemoryFile* file = snapshot.buffer_.file()) file->end_write();
  snapshot.progress_ = progress;
  for (auto& checksum : snapshot.checksums_) checksum.store(0, std::memory_order_relaxed);
  std::shared_ptr<const Snapshot> previous = std::move(writer.snapshot_);
  const MutexLock lock(latest_mutex_);
  DPWA_INVARIANT(!latest_ || progress.version > latest_->progress().version,
                 "versions are published in ascending order", progress.version,
                 latest_->progress().version);
  latest_.swap(previous);
}

std::shared_ptr<const Snapshot> SnapshotStore::latest() const {
  const MutexLock lock(latest_mutex_);
  return latest_;
}

Progress SnapshotStore::progress() const {
  const MutexLock lock(latest_mutex_);
  return latest_ ? latest_->progress() : Progress{};
}

}  // namespace dpwa
