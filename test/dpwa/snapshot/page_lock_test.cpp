#include "dpwa/snapshot/page_lock.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "dpwa/snapshot/memory_file.h"

namespace dpwa {
namespace {

// A runtime that notes what it is asked for.
struct Runtime {
  static inline std::string log;
  static inline bool refuses = false;
  static inline void* locked = nullptr;
  static int lock(void* data, std::size_t bytes, unsigned flags) {
    log += "lock " + std::to_string(bytes) + " flags " + std::to_string(flags) + "; ";
    if (refuses) return 2;
    locked = data;
    return 0;
  }
  static int unlock(void* data) {
    log += data == locked ? "unlock; " : "unlock something else; ";
    return 0;
  }
  static int take_error() {
    log += "take error; ";
    return 2;
  }
  static PageLockCalls calls() {
    log.clear();
    return {lock, unlock, take_error};
  }
};

}  // namespace

TEST_CASE("memory that other processes map is locked at its size, until it is freed") {
  const PageLockCalls calls = Runtime::calls();
  {
    AlignedBuffer buffer = AlignedBuffer::shared(5000);
    REQUIRE(lock_pages(buffer, calls));
    CHECK(buffer.file() != nullptr);
    CHECK(buffer.bytes().data() == Runtime::locked);
    const AlignedBuffer moved = std::move(buffer);
    CHECK(Runtime::log == "lock 5000 flags 1; ");
  }
  CHECK(Runtime::log == "lock 5000 flags 1; unlock; ");
}

TEST_CASE("memory that cannot be locked stays as it is, and leaves no error behind") {
  const PageLockCalls calls = Runtime::calls();
  Runtime::refuses = true;
  {
    AlignedBuffer buffer(100);
    CHECK_FALSE(lock_pages(buffer, calls));
    CHECK(buffer.bytes().size() == 100);
  }
  Runtime::refuses = false;
  CHECK(Runtime::log == "lock 100 flags 1; take error; ");
  AlignedBuffer buffer(100);
  CHECK_FALSE(lock_pages(buffer, PageLockCalls{}));
}

}  // namespace dpwa
