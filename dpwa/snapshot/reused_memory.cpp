#include "dpwa/snapshot/reused_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/threads.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa {
namespace {

struct Arena {
  std::byte* begin = nullptr;
  std::shared_ptr<MemoryFile> file;  // null: memory of this process alone
};

// Few sizes: free blocks of one are of no use to another.
constexpr std::size_t round_up(std::size_t bytes) {
  const std::size_t step = std::max(least_reused_bytes, std::bit_ceil(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

// Never destroyed: containers of static storage may outlive every static object.
class Pool {
 public:
  static Pool& instance() {
    static Pool& pool = *new Pool;
    return pool;
  }

  void share() { shares_ = true; }

  void* take(std::size_t bytes) {
    const std::size_t size = round_up(bytes);
    const MutexLock lock(mutex_);
    auto& free = free_[size];
    if (free.empty()) return cut(size);
    void* block = free.back();
    free.pop_back();
    return block;
  }

  void give_back(void* block, std::size_t bytes) noexcept {
    const MutexLock lock(mutex_);
    const std::size_t size = round_up(bytes);
    auto& free = free_[size];
    DPWA_INVARIANT(free.size() < cut_[size], "no more blocks are given back than were cut",
                   free.size(), size);
    free.push_back(block);  // has room: see cut()
  }

  std::optional<SharedPlace> place_of(const std::byte* bytes) {
    if (!shares_) return std::nullopt;
    const MutexLock lock(mutex_);
    const auto after = by_address_.upper_bound(bytes);
    if (after == by_address_.begin()) return std::nullopt;
    const auto& [begin, number] = *std::prev(after);
    const auto offset = static_cast<std::size_t>(bytes - begin);
    if (offset >= arena_bytes || !arenas_[number].file) return std::nullopt;
    return SharedPlace{shared_number_[number], offset};
  }

  const MemoryFile* file(std::uint32_t number) {
    const MutexLock lock(mutex_);
    return number < shared_.size() ? shared_[number] : nullptr;
  }

 private:
  // A new block, with room for it in the list that it goes to.
  void* cut(std::size_t size) DPWA_REQUIRES(mutex_) {
    if (room_ < size) add_arena();
    static_assert(most_reused_bytes <= arena_bytes);
    auto& free = free_[size];
    free.reserve(std::max(free.capacity(), 2 * ++cut_[size]));
    void* block = next_;
    next_ += size;
    room_ -= size;
    return block;
  }

  // The rest of the last one stays unused.
  void add_arena() DPWA_REQUIRES(mutex_) {
    Arena arena;
    if (shares_) arena.file = MemoryFile::create(arena_bytes);
    if (arena.file) {
      arena.begin = arena.file->data();
    } else {
      arena.begin = map_aligned(arena_bytes, huge_page_bytes, PROT_READ | PROT_WRITE);
      if (arena.begin == nullptr) throw std::bad_alloc();
      ::madvise(arena.begin, arena_bytes, MADV_HUGEPAGE);  // a hint: failure costs speed only
    }
    by_address_[arena.begin] = arenas_.size();
    shared_number_.push_back(static_cast<std::uint32_t>(shared_.size()));
    if (arena.file) shared_.push_back(arena.file.get());
    next_ = arena.begin;
    room_ = arena_bytes;
    arenas_.push_back(std::move(arena));
  }

  std::atomic<bool> shares_{false};
  Mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_ DPWA_GUARDED_BY(mutex_);  // by size
  std::map<std::size_t, std::size_t> cut_ DPWA_GUARDED_BY(mutex_);          // blocks of a size
  std::vector<Arena> arenas_ DPWA_GUARDED_BY(mutex_);
  std::map<const std::byte*, std::size_t> by_address_ DPWA_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> shared_number_ DPWA_GUARDED_BY(mutex_);  // by place in arenas_
  std::vector<const MemoryFile*> shared_ DPWA_GUARDED_BY(mutex_);
  std::byte* next_ DPWA_GUARDED_BY(mutex_) = nullptr;
  std::size_t room_ DPWA_GUARDED_BY(mutex_) = 0;
};

constexpr bool is_reused(std::size_t bytes) {
  return bytes >= least_reused_bytes && bytes <= most_reused_bytes;
}

}  // namespace

void share_reused_memory() {
  Pool::instance().share();
}

std::optional<SharedPlace> shared_place(const std::byte* bytes) {
  return Pool::instance().place_of(bytes);
}

const MemoryFile* shared_arena(std::uint32_t number) {
  return Pool::instance().file(number);
}

ReusedBytes copy_of(std::span<const std::byte> bytes) {
  ReusedBytes copy(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

namespace reused_memory {

void* take(std::size_t bytes) {
  return is_reused(bytes) ? Pool::instance().take(bytes) : ::operator new(bytes);
}

void give_back(void* block, std::size_t bytes) noexcept {
  if (is_reused(bytes)) {
    Pool::instance().give_back(block, bytes);
  } else {
    ::operator delete(block);
  }
}

}  // namespace reused_memory
}  // namespace dpwa
