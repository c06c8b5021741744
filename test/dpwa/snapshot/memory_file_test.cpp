#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/memory_file.h"
#include "dpwa/snapshot/snapshot_store.h"

namespace dpwa {
namespace {

using Layout = MemoryFileLayout;

AlignedBuffer allocate_shared(std::size_t bytes) {
  return AlignedBuffer::shared(bytes);
}

FileDescriptor copy_of(const MemoryFile& file) {
  return FileDescriptor(::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0));
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

TEST_CASE("a memory file keeps its size, as readers of every version ask for") {
  const auto file = MemoryFile::create(8192);
  REQUIRE(file);
  const int descriptor = file->descriptor();
  CHECK(::ftruncate(descriptor, 4096) != 0);
  CHECK(::ftruncate(descriptor, 1 << 20) != 0);
  CHECK(::fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE) != 0);
  CHECK((::fcntl(descriptor, F_GET_SEALS) & F_SEAL_SHRINK) != 0);
}

TEST_CASE("one process reads what the other wrote to a memory file, and each keeps it") {
  for (const std::size_t bytes : {0UL, 1UL, 4096UL, (2UL << 20) + 5}) {
    CAPTURE(bytes);
    auto here = MemoryFile::create(bytes, MemoryFile::Access::write, "dpwa-test");
    REQUIRE(here);
    const auto there = MemoryFile::open(copy_of(*here), bytes, MemoryFile::Access::write);
    const auto reader = MemoryFile::open(copy_of(*here), bytes, MemoryFile::Access::read);
    REQUIRE(there);
    REQUIRE(reader);
    const auto read = (*reader)->bytes({0, bytes});
    CHECK(std::ranges::count(read, std::byte{0}) == std::ptrdiff_t(bytes));
    CHECK((*reader)->populate({0, bytes}));
    if (bytes == 0) continue;
    here->data()[bytes - 1] = std::byte{7};
    CHECK((*there)->data()[bytes - 1] == std::byte{7});
    (*there)->data()[0] = std::byte{8};
    CHECK(here->data()[0] == std::byte{8});
    here->begin_write();
    here->end_write();
    CHECK((*reader)->generation() == 2);
    here.reset();
    CHECK(read.front() == std::byte{8});
  }
}

TEST_CASE("a descriptor that is no memory file, or one of another size, is not opened") {
  using Access = MemoryFile::Access;
  const auto file = MemoryFile::create(10);
  REQUIRE(file);
  CHECK(MemoryFile::open(copy_of(*file), 1 << 20, Access::write).error() ==
        "sent memory of another size");
  CHECK_FALSE(MemoryFile::open(copy_of(*file), ~std::size_t{0}, Access::read));
  FileDescriptor device(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  CHECK_FALSE(MemoryFile::open(std::move(device), 10, Access::write));
  CHECK(MemoryFile::open({}, 10, Access::read).error() == "sent no memory");
}

TEST_CASE("memory that could shrink under its reader is not opened") {
  const auto sound = MemoryFile::create(1 << 16);
  REQUIRE(sound != nullptr);
  struct stat facts {};
  REQUIRE(::fstat(sound->descriptor(), &facts) == 0);
  FileDescriptor loose(::memfd_create("dpwa-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(loose.get(), facts.st_size) == 0);
  CHECK(MemoryFile::open(std::move(loose), 1 << 16, MemoryFile::Access::read).error() ==
        "sent memory that is not sealed against shrinking");
}

TEST_CASE("a process that memory is lent to can neither write to it nor take its pages") {
  const auto file = MemoryFile::create(8192);
  REQUIRE(file);
  const std::byte written{7};
  file->data()[0] = written;
  const int descriptor = file->descriptor();
  if ((::fcntl(descriptor, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) == 0) {
    MESSAGE("this kernel knows no such seal");
    return;
  }
  CHECK(::mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, descriptor, 0) == MAP_FAILED);
  const auto reader = MemoryFile::open(copy_of(*file), 8192, MemoryFile::Access::read);
  REQUIRE(reader);
  CHECK(::mprotect((*reader)->data(), 4096, PROT_READ | PROT_WRITE) != 0);
  CHECK(::pwrite(descriptor, "x", 1, 0) != 1);
  CHECK(::fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0);
  CHECK(MemoryFile::open(copy_of(*file), 8192, MemoryFile::Access::write).error() ==
        "sent memory that cannot be mapped");
  CHECK((*reader)->bytes({0, 1}).front() == written);
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
  CHECK(store.files().size() == 2);
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
  CHECK(SnapshotStore(64, 4096, plain).files().empty());
  int count = 0;
  const auto mixed = [&](std::size_t bytes) {
    return ++count == 2 ? AlignedBuffer(bytes) : AlignedBuffer::shared(bytes);
  };
  CHECK(SnapshotStore(64, 4096, mixed).files().empty());
}

TEST_CASE("what keeps memory usable ends before the memory, with the last owner") {
  bool mapped = true;
  bool ended = false;
  std::byte data[64];
  AlignedBuffer buffer(std::shared_ptr<std::byte>(data, [&](std::byte*) { mapped = false; }), 64);
  buffer.keep(std::shared_ptr<void>(data, [&](void*) { ended = mapped; }));
  CHECK(buffer.bytes().data() == data);
  AlignedBuffer moved = std::move(buffer);
  CHECK_FALSE(ended);
  moved = {};
  CHECK(ended);
  CHECK_FALSE(mapped);
  CHECK(AlignedBuffer::of_host(1000, /*shared=*/true).file() != nullptr);
  CHECK(AlignedBuffer::of_host(1000, /*shared=*/false).file() == nullptr);
}

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
