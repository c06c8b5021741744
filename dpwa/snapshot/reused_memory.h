#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dpwa {

class MemoryFile;

// Memory for values that come and go at a high rate, such as those of messages: blocks of one size
// are used again and again, so that no page fault falls on a copy. Blocks lie in arenas on huge
// pages where the system grants them; a process keeps as much as it ever used at once. Once
// share_reused_memory() has been called, new arenas are memory files that other processes of this
// host can map. Thread-safe.
inline constexpr std::size_t least_reused_bytes = std::size_t{64} << 10;  // below: the heap's
inline constexpr std::size_t most_reused_bytes = std::size_t{16} << 20;   // above: the heap's
inline constexpr std::size_t arena_bytes = std::size_t{32} << 20;

// From now on, until the process ends.
void share_reused_memory();

// Where a block lies for other processes.
struct SharedPlace {
  std::uint32_t arena = 0;  // from 0
  std::uint64_t offset = 0;
};
// None: it is not in a memory file. `bytes`: any part of a block.
std::optional<SharedPlace> shared_place(const std::byte* bytes);
// Null: there is none of that number. It lives as long as the process.
const MemoryFile* shared_arena(std::uint32_t number);

namespace reused_memory {
void* take(std::size_t bytes);  // throws std::bad_alloc
void give_back(void* block, std::size_t bytes) noexcept;
}  // namespace reused_memory

// An allocator for containers of bytes. Elements without an initial value stay as the memory is:
// resize() and the constructor with a size write nothing.
template <class T>
struct ReusedMemory {
  using value_type = T;
  ReusedMemory() = default;
  template <class Other>
  ReusedMemory(const ReusedMemory<Other>&) {}  // NOLINT: as every allocator

  T* allocate(std::size_t count) { return static_cast<T*>(reused_memory::take(count * sizeof(T))); }
  void deallocate(T* block, std::size_t count) noexcept {
    reused_memory::give_back(block, count * sizeof(T));
  }
  template <class Other>
  void construct(Other* place) {
    ::new (static_cast<void*>(place)) Other;
  }
  template <class Other, class... Arguments>
  void construct(Other* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) Other(std::forward<Arguments>(arguments)...);
  }
  friend bool operator==(const ReusedMemory&, const ReusedMemory&) { return true; }
};

using ReusedBytes = std::vector<std::byte, ReusedMemory<std::byte>>;
// As the copy constructor, which goes byte by byte.
ReusedBytes copy_of(std::span<const std::byte> bytes);

}  // namespace dpwa
