#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace dpwa {

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
      : memory_(std::move(memory)), bytes_(bytes) {}

  std::span<std::byte> bytes() { return {memory_.get(), bytes_}; }
  std::span<const std::byte> bytes() const { return {memory_.get(), bytes_}; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_ = 0;
};

using BufferAllocator = std::function<AlignedBuffer(std::size_t bytes)>;

}  // namespace dpwa
