#include "bench/step/allocation_counter.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t of_this_thread = 0;
std::atomic<std::uint64_t> of_all_threads{0};

void* allocate(std::size_t bytes, std::size_t alignment) {
  ++of_this_thread;
  of_all_threads.fetch_add(1, std::memory_order_relaxed);
  bytes = std::max<std::size_t>(bytes, 1);
  void* memory = nullptr;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
    memory = std::malloc(bytes);
  } else if (::posix_memalign(&memory, alignment, bytes) != 0) {
    memory = nullptr;
  }
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The array and nothrow forms call these.
void* operator new(std::size_t bytes) {
  return allocate(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace dpwa::bench {

std::uint64_t allocations_of_this_thread() {
  return of_this_thread;
}
std::uint64_t allocations_of_all_threads() {
  return of_all_threads.load(std::memory_order_relaxed);
}

}  // namespace dpwa::bench
