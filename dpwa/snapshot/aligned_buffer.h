#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace dpwa {

class MemoryFile;

// Host memory for parameters, zeroed, aligned to 64 bytes at least. Movable; the memory goes with
// the last owner.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Page-aligned, on huge pages where the system grants them, every page touched here so that no
  // page fault falls into a training step. Throws std::bad_alloc.
  explicit AlignedBuffer(std::size_t bytes);
  // Memory from elsewhere, e.g. pinned for an accelerator's copies.
  AlignedBuffer(std::shared_ptr<std::byte> memory, std::size_t bytes)
      : memory_(std::move(memory)), bytes_(bytes), foreign_(true) {}

  // Memory that other processes of this host can map (memory_file.h); where the system has none,
  // memory as above. Throws std::bad_alloc.
  static AlignedBuffer shared(std::size_t bytes);

  std::span<std::byte> bytes() { return {memory_.get(), bytes_}; }
  std::span<const std::byte> bytes() const { return {memory_.get(), bytes_}; }
  MemoryFile* file() const { return file_.get(); }  // null: memory of this process alone
  bool foreign() const { return foreign_; }         // memory from elsewhere

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_ = 0;
  std::shared_ptr<MemoryFile> file_;
  bool foreign_ = false;
};

using BufferAllocator = std::function<AlignedBuffer(std::size_t bytes)>;

// Of shared memory where `allocate` gives plain memory of this process; memory from elsewhere, e.g.
// pinned for an accelerator, stays as it is. Asks `allocate` for one byte to tell.
BufferAllocator shared_where_possible(BufferAllocator allocate);

}  // namespace dpwa
