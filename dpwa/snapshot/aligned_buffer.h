#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace dpwa {

// The sizes of x86-64. A kernel with larger pages rounds up by itself.
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// A mapping of `bytes` bytes that begins on a multiple of `alignment` (a power of two). It maps the
// beginning of the file `descriptor`, shared, or anonymous private memory for -1. Null when the
// system refuses. The caller unmaps exactly [result, result + bytes).
std::byte* map_aligned(std::size_t bytes, std::size_t alignment, int protection,
                       int descriptor = -1);

// Zeroes every page of a shared mapping, so that all pages are present from now on. Uses huge pages
// where the mapping begins on one and the system has them.
void touch_shared_pages(std::byte* data, std::size_t bytes);

class MemoryFile;

// Host memory for parameters, zeroed and aligned to at least 64 bytes. Movable; the last owner
// frees the memory.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Page-aligned, on huge pages where the system grants them, every page touched here so that no
  // page fault falls into a training step. Throws std::bad_alloc.
  explicit AlignedBuffer(std::size_t bytes);
  // Memory from elsewhere, e.g. pinned for an accelerator's copies.
  AlignedBuffer(std::shared_ptr<std::byte> memory, std::size_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}

  // Plain memory of this process, as above.
  static AlignedBuffer plain(std::size_t bytes) { return AlignedBuffer(bytes); }
  // Memory that other processes of this host can map (memory_file.h), or plain memory where the
  // system refuses it. Throws std::bad_alloc.
  static AlignedBuffer shared(std::size_t bytes);
  // The latter or the former.
  static AlignedBuffer of_host(std::size_t bytes, bool shared) {
    return shared ? AlignedBuffer::shared(bytes) : plain(bytes);
  }

  std::span<std::byte> bytes() { return {memory_.get(), bytes_}; }
  std::span<const std::byte> bytes() const { return {memory_.get(), bytes_}; }
  MemoryFile* file() const { return file_.get(); }  // null: memory of this process alone

  // `owner` lives as long as the memory is used, and ends before the memory is freed.
  void keep(std::shared_ptr<void> owner);

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_ = 0;
  std::shared_ptr<MemoryFile> file_;
};

using BufferAllocator = std::function<AlignedBuffer(std::size_t bytes)>;

}  // namespace dpwa
