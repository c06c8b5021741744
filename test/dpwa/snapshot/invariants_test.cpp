// What snapshots and their memory guarantee by themselves: each of their invariants broken once.

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/encoded_chunk.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/memory_file.h"
#include "dpwa/snapshot/reused_memory.h"
#include "dpwa/snapshot/snapshot_store.h"
#include "test/support/broken_invariant.h"
#include "test/support/run_in_child.h"

namespace dpwa {
namespace {

using test::breaks;

Manifest floats(std::uint64_t elements) {
  return Manifest({{"weight", DType::float32, BlendRule::interpolate, {elements}}});
}

Progress of_version(std::uint64_t number) {
  Progress progress;
  progress.version = number;
  return progress;
}

AlignedBuffer half(std::size_t bytes) {
  return AlignedBuffer(bytes / 2);
}

}  // namespace

TEST_CASE("a store publishes each buffer once, in the order of versions") {
  const auto store_of = [](std::size_t buffers) {
    SnapshotStore(128, 64, AlignedBuffer::plain, buffers);
  };
  CHECK(breaks("a store has a number of buffers", [&] { store_of(1); }));
  CHECK(breaks("a store has a number of buffers", [&] { store_of(65); }));
  CHECK(breaks("a buffer has room for the whole model", [] { SnapshotStore(128, 64, half); }));
  SnapshotStore store(128, 64, AlignedBuffer::plain);
  auto writer = *store.begin();
  store.publish(std::move(writer), of_version(2));
  CHECK(breaks("a buffer is published once",
               [&] { store.publish(std::move(writer), of_version(3)); }));  // NOLINT: moved from
  for (const std::uint64_t version : {1U, 2U}) {
    CHECK(breaks("versions are published in ascending order",
                 [&] { store.publish(*store.begin(), of_version(version)); }));
    CHECK(store.progress().version == 2);  // nothing was published
  }
  CHECK(breaks("a checksum is of bytes of the snapshot",
               [&] { store.latest()->chunk_checksum(64, 65); }));
  CHECK(breaks("a checksum is of bytes of the snapshot",
               [&] { store.latest()->chunk_checksum(~std::size_t{0}, 2); }));
}

TEST_CASE("what lands is a part of the model, compared with a snapshot of it") {
  const Manifest manifest = floats(32);
  CHECK(
      breaks("the landing buffer has room for the whole model", [&] { Landing(manifest, half); }));
  Landing landing(manifest, AlignedBuffer::plain);
  SnapshotStore store(128, 64, AlignedBuffer::plain), other(64, 64, AlignedBuffer::plain);
  store.publish(*store.begin(), of_version(1));
  other.publish(*other.begin(), of_version(1));
  const auto begin = [&](std::shared_ptr<const Snapshot> own, ByteRange range) {
    landing.begin(LandingMode::values, std::move(own), range);
  };
  CHECK(breaks("what lands is a part of the model", [&] { begin(store.latest(), {64, 128}); }));
  CHECK(breaks("what lands is compared with a snapshot of the same model",
               [&] { begin(other.latest(), {0, 128}); }));
  const std::vector<std::byte> bytes(64);
  begin(store.latest(), {0, 64});
  CHECK(breaks("a chunk is of the range that lands", [&] { landing.consume(64, bytes); }));
  CHECK(breaks("a chunk has its whole payload",
               [&] { landing.consume(Codec::fp16, {0, 64}, std::span(bytes).first(16)); }));
  landing.release();
  CHECK(breaks("what lands is compared with the own snapshot", [&] { landing.consume(0, bytes); }));
}

TEST_CASE("what is encoded is a part of the snapshot, and has room") {
  const Manifest manifest = floats(32);
  std::vector<std::byte> bytes(128), payload(64);
  const auto encode = [&](Codec codec, ByteRange chunk) {
    encode_chunk(manifest, codec, bytes, chunk, payload);
  };
  encode(Codec::fp16, {0, 128});
  CHECK(breaks("what is encoded is a part of the snapshot", [&] { encode(Codec::raw, {0, 64}); }));
  CHECK(
      breaks("what is encoded is a part of the snapshot", [&] { encode(Codec::fp16, {64, 128}); }));
  payload.resize(16);
  CHECK(breaks("an encoded chunk has room in its payload", [&] { encode(Codec::fp16, {0, 128}); }));
  CHECK(breaks("a range is cut into chunks of some bytes",
               [&] { payload_bytes(manifest, Codec::fp16, {0, 128}, 0); }));
}

TEST_CASE("memory is aligned to a power of two, and its bytes are within it") {
  CHECK(breaks("an alignment is a power of two", [] { map_aligned(4096, 3, 0); }));
  const auto file = MemoryFile::create(4096);
  if (file == nullptr) return;  // the system refuses such files
  CHECK(breaks("bytes are of the data of the file", [&] { file->bytes({4000, 97}); }));
  CHECK(breaks("bytes are of the data of the file", [&] { file->bytes({~std::uint64_t{0}, 2}); }));
}

// Memory is given back without exceptions, so that this one ends a process.
TEST_CASE("a block of memory is given back once") {
  const test::Ended child = test::run_in_child([] {
    constexpr std::size_t size = most_reused_bytes - 4096;
    void* block = reused_memory::take(size);
    reused_memory::give_back(block, size);
    for (int more = 0; more < 64; ++more) reused_memory::give_back(block, size);
  });
  CHECK(child.errors.find("no more blocks are given back than were cut") != std::string::npos);
  CHECK(child.exit_code != 0);
}

}  // namespace dpwa
