#include "dpwa/snapshot/memory_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/snapshot_store.h"

namespace dpwa {
namespace {

using Layout = MemoryFileLayout;

AlignedBuffer allocate_shared(std::size_t bytes) {
  return AlignedBuffer::shared(bytes);
}

void publish(SnapshotStore& store, std::uint64_t version, std::byte value) {
  auto writer = store.begin();
  REQUIRE(writer);
  std::ranges::fill(writer->bytes(), value);
  Progress progress;
  progress.version = version;
  store.publish(std::move(*writer), progress);
}

}  // namespace

TEST_CASE("a memory file is zeroed, writable to its end, and followed by its generation") {
  for (const std::size_t bytes : {1UL, 4096UL, 4097UL, 5000000UL}) {
    const auto file = MemoryFile::create(bytes);
    REQUIRE(file);
    const std::span<std::byte> data(file->data(), bytes);
    CHECK(std::ranges::all_of(data, [](std::byte value) { return value == std::byte{0}; }));
    std::ranges::fill(data, std::byte{0xFF});
    CHECK(file->generation() == 0);
    struct stat status {};
    REQUIRE(::fstat(file->descriptor(), &status) == 0);
    CHECK(status.st_size == static_cast<off_t>(Layout::file_bytes(bytes)));
    CHECK(Layout::generation_offset(bytes) >= bytes);
    CHECK((::fcntl(file->descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE(
    "nobody can shrink a memory file, and what holds only its descriptor cannot write to it") {
  constexpr std::size_t bytes = 8192;
  const auto file = MemoryFile::create(bytes);
  REQUIRE(file);
  const int descriptor = file->descriptor();
  CHECK(::ftruncate(descriptor, 4096) != 0);
  CHECK(::ftruncate(descriptor, 1 << 20) != 0);
  CHECK(::fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0);
  CHECK(::pwrite(descriptor, "x", 1, 0) < 0);
  CHECK(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) == MAP_FAILED);
  CHECK(::fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE) != 0);

  void* reader = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  REQUIRE(reader != MAP_FAILED);
  file->data()[bytes - 1] = std::byte{7};  // its owner can
  CHECK(static_cast<const std::byte*>(reader)[bytes - 1] == std::byte{7});
  CHECK(::mprotect(reader, bytes, PROT_READ | PROT_WRITE) != 0);
  ::munmap(reader, bytes);
}

TEST_CASE("a generation is odd while the owner writes and a new even number after each write") {
  const auto file = MemoryFile::create(64);
  REQUIRE(file);
  std::uint64_t last = file->generation();
  for (int write = 0; write < 3; ++write) {
    file->begin_write();
    CHECK(file->generation() % 2 == 1);
    file->begin_write();  // the write before was abandoned
    CHECK(file->generation() % 2 == 1);
    file->end_write();
    CHECK(file->generation() % 2 == 0);
    CHECK(file->generation() > last);
    last = file->generation();
  }
}

TEST_CASE("more memory than there is gives no memory file") {
  CHECK(MemoryFile::create(std::size_t{1} << 60) == nullptr);
  CHECK(MemoryFile::create(~std::size_t{0}) == nullptr);
}

TEST_CASE("a store of shared buffers keeps the generation of a snapshot as long as it is held") {
  SnapshotStore store(1000, 4096, allocate_shared, 2);
  CHECK(store.shareable());
  publish(store, 1, std::byte{1});
  auto held = store.latest();
  const MemoryFile* file = held->file();
  REQUIRE(file);
  const auto generation = file->generation();
  CHECK(generation % 2 == 0);
  CHECK(held->buffer() < 2);

  publish(store, 2, std::byte{2});
  CHECK(store.latest()->buffer() != held->buffer());
  CHECK(file->generation() == generation);
  held.reset();
  {
    const auto abandoned = store.begin();
    REQUIRE(abandoned);
    CHECK(file->generation() == generation + 1);
  }
  publish(store, 3, std::byte{3});
  CHECK(store.latest()->file() == file);
  CHECK(file->generation() == generation + 2);
}

TEST_CASE("a store is shareable only if every buffer is") {
  const auto plain = [](std::size_t bytes) { return AlignedBuffer(bytes); };
  CHECK_FALSE(SnapshotStore(64, 4096, plain).shareable());
  int count = 0;
  const auto mixed = [&](std::size_t bytes) {
    return ++count == 2 ? AlignedBuffer(bytes) : AlignedBuffer::shared(bytes);
  };
  CHECK_FALSE(SnapshotStore(64, 4096, mixed).shareable());
}

TEST_CASE("plain memory is replaced by shared memory, memory from elsewhere is left alone") {
  const auto shared = shared_where_possible([](std::size_t bytes) { return AlignedBuffer(bytes); });
  CHECK(shared(1000).file() != nullptr);
  CHECK(shared(1000).bytes().size() == 1000);

  static std::byte pinned[1000];
  const auto elsewhere = shared_where_possible([](std::size_t bytes) {
    return AlignedBuffer(std::shared_ptr<std::byte>(pinned, [](std::byte*) {}), bytes);
  });
  CHECK(elsewhere(1000).file() == nullptr);
  CHECK(elsewhere(1000).bytes().data() == pinned);
}

}  // namespace dpwa
