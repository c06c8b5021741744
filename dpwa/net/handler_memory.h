#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace dpwa::net {

// Memory for a handler that is posted again and again, and is never pending twice: posting takes it
// from here instead of the heap. Goes to the heap for what does not fit. Allocated by the posting
// thread, given back by the one that runs the handler; the hand-over orders the two.
class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* allocate(std::size_t bytes) {
    if (used_ || bytes > storage_.size()) return ::operator new(bytes);
    used_ = true;
    return storage_.data();
  }
  void deallocate(void* memory) {
    if (memory != storage_.data()) return ::operator delete(memory);
    used_ = false;
  }

 private:
  alignas(std::max_align_t) std::array<std::byte, 256> storage_;
  bool used_ = false;
};

// For boost::asio::bind_allocator. Keeps the memory for as long as the handler lasts: one that is
// never run goes with its io_context.
template <class T>
class HandlerAllocator {
 public:
  using value_type = T;
  explicit HandlerAllocator(std::shared_ptr<HandlerMemory> memory) : memory_(std::move(memory)) {}
  template <class Other>
  HandlerAllocator(const HandlerAllocator<Other>& other) : memory_(other.memory_) {}

  T* allocate(std::size_t count) { return static_cast<T*>(memory_->allocate(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) { memory_->deallocate(memory); }
  bool operator==(const HandlerAllocator&) const = default;

 private:
  template <class>
  friend class HandlerAllocator;
  std::shared_ptr<HandlerMemory> memory_;
};

}  // namespace dpwa::net
