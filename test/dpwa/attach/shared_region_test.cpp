#include "dpwa/attach/shared_region.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace dpwa::attach {
namespace {

FileDescriptor copy_of(int descriptor) {
  return FileDescriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

TEST_CASE("a region is zeroed, and what one side writes the other reads") {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, (std::size_t{2} << 20) + 5}) {
    CAPTURE(bytes);
    const auto here = SharedRegion::create(bytes);
    const auto there = SharedRegion::open(copy_of(here->descriptor()), bytes);
    REQUIRE(there);
    REQUIRE(there->bytes().size() == bytes);
    CHECK(std::ranges::count(there->bytes(), std::byte{0}) == std::ptrdiff_t(bytes));
    if (bytes == 0) continue;
    here->bytes().back() = std::byte{7};
    CHECK(there->bytes().back() == std::byte{7});
    there->bytes().front() = std::byte{8};
    CHECK(here->bytes().front() == std::byte{8});
  }
}

TEST_CASE("a region outlives the side that made it") {
  auto here = SharedRegion::create(10);
  const auto there = SharedRegion::open(copy_of(here->descriptor()), 10);
  here->bytes()[0] = std::byte{3};
  here.reset();
  CHECK(there->bytes()[0] == std::byte{3});
}

TEST_CASE("memory that is too short, could shrink, or is no memory file is not opened") {
  const auto here = SharedRegion::create(10);
  CHECK_FALSE(SharedRegion::open(copy_of(here->descriptor()), 1 << 20));
  CHECK(::ftruncate(here->descriptor(), 1) != 0);
  FileDescriptor unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(unsealed.get(), 1 << 16) == 0);
  CHECK_FALSE(SharedRegion::open(std::move(unsealed), 10));
  CHECK_FALSE(SharedRegion::open(FileDescriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), 10));
  CHECK_FALSE(SharedRegion::open(FileDescriptor(), 10));
}

TEST_CASE("a region larger than memory is refused") {
  CHECK_THROWS_AS(SharedRegion::create(std::size_t{1} << 60), std::bad_alloc);
  CHECK_THROWS_AS(SharedRegion::create(~std::size_t{0}), std::bad_alloc);
}

}  // namespace dpwa::attach
