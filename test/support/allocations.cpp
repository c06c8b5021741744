#include "test/support/allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t count = 0;
thread_local bool exempt = false;
std::atomic<std::int64_t> until_refusal{-1};  // below 0: none is to be refused

bool is_refused() {
  if (exempt || until_refusal.load(std::memory_order_relaxed) < 0) return false;
  return until_refusal.fetch_sub(1) == 0;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  ++count;
  if (is_refused()) throw std::bad_alloc();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The forms that are not replaced here call these.
void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++count;
  if (is_refused()) return nullptr;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace dpwa::test {

std::uint64_t allocations() {
  return count;
}

void refuse_one(std::uint64_t skipped) {
  exempt = true;
  until_refusal = static_cast<std::int64_t>(skipped);
}

bool refuse_none() {
  return until_refusal.exchange(-1) < 0;
}

}  // namespace dpwa::test
