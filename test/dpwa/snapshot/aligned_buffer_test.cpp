#include "dpwa/snapshot/aligned_buffer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

namespace dpwa {
namespace {

bool zeroed(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte value) { return value == std::byte{0}; });
}

std::uintptr_t address_of(const AlignedBuffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.bytes().data());
}

}  // namespace

TEST_CASE("a buffer is zeroed, page-aligned, of exactly the size asked for, writable to its end") {
  for (const std::size_t bytes : {1UL, 64UL, 4095UL, 4096UL, 4097UL, 2097151UL}) {
    AlignedBuffer buffer(bytes);
    CHECK(buffer.bytes().size() == bytes);
    CHECK(address_of(buffer) % 4096 == 0);
    CHECK(zeroed(buffer.bytes()));
    buffer.bytes().front() = std::byte{1};
    buffer.bytes().back() = std::byte{2};
  }
}

TEST_CASE("a buffer of two megabytes and more begins on a huge page") {
  for (const std::size_t bytes : {2097152UL, 2097153UL, 5000000UL}) {
    AlignedBuffer buffer(bytes);
    CHECK(address_of(buffer) % 2097152 == 0);
    CHECK(zeroed(buffer.bytes()));
    buffer.bytes().back() = std::byte{2};
  }
}

TEST_CASE("a buffer of nothing is empty") {
  CHECK(AlignedBuffer(0).bytes().empty());
  CHECK(AlignedBuffer().bytes().empty());
}

TEST_CASE("memory from elsewhere is kept as long as the buffer") {
  auto memory = std::shared_ptr<std::byte>(new std::byte[64], std::default_delete<std::byte[]>());
  const std::weak_ptr<std::byte> watched = memory;
  {
    AlignedBuffer buffer(std::move(memory), 64);
    const AlignedBuffer moved = std::move(buffer);
    CHECK_FALSE(watched.expired());
    CHECK(moved.bytes().size() == 64);
  }
  CHECK(watched.expired());
}

TEST_CASE("memory that the system does not have is std::bad_alloc") {
  CHECK_THROWS_AS(AlignedBuffer(std::size_t{1} << 60), std::bad_alloc);
}

}  // namespace dpwa
