#include "dpwa/snapshot/snapshot_store.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "dpwa/base/checksum.h"

namespace dpwa {
namespace {

constexpr std::size_t chunk_bytes = 4096;

Progress version(std::uint64_t number) {
  Progress progress;
  progress.version = number;
  progress.clock = static_cast<double>(number);
  return progress;
}

// Publishes a snapshot whose every word is `number`; false when it was skipped.
bool publish(SnapshotStore& store, std::uint64_t number) {
  auto writer = store.begin();
  if (!writer) return false;
  const auto bytes = writer->bytes();
  std::ranges::fill(
      std::span(reinterpret_cast<std::uint64_t*>(bytes.data()), bytes.size() / sizeof number),
      number);
  store.publish(std::move(*writer), version(number));
  return true;
}

bool whole(const Snapshot& snapshot) {
  const auto bytes = snapshot.bytes();
  const std::span words(reinterpret_cast<const std::uint64_t*>(bytes.data()),
                        bytes.size() / sizeof(std::uint64_t));
  return std::ranges::all_of(
      words, [&](std::uint64_t word) { return word == snapshot.progress().version; });
}

}  // namespace

TEST_CASE(
    "a reader sees whole snapshots in the order of their publication, however fast they come") {
  constexpr std::uint64_t publications = 3000;
  SnapshotStore store(3 * chunk_bytes + 64, chunk_bytes, AlignedBuffer::plain);
  REQUIRE(publish(store, 1));
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::atomic<int> reads{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      std::uint64_t last = 0;
      while (!done) {
        const auto snapshot = store.latest();
        const bool sound = whole(*snapshot) && snapshot->progress().version >= last &&
                           snapshot->chunk_checksum(0, chunk_bytes) ==
                               crc32c(snapshot->bytes().first(chunk_bytes));
        last = snapshot->progress().version;
        if (!sound) ++torn;
        ++reads;
        std::this_thread::yield();
      }
    });
  }
  std::uint64_t published = 1;
  for (std::uint64_t number = 2; number <= publications || reads < 100; ++number) {
    if (publish(store, number)) ++published;
  }
  done = true;
  for (auto& reader : readers) reader.join();
  CHECK(torn == 0);
  CHECK(published > 1);
  CHECK(whole(*store.latest()));
}

TEST_CASE("publishing is skipped and counted while readers hold every other buffer, and resumes") {
  SnapshotStore store(64, chunk_bytes, AlignedBuffer::plain, 3);
  REQUIRE(publish(store, 1));
  auto first = store.latest();
  REQUIRE(publish(store, 2));
  const auto second = store.latest();
  REQUIRE(publish(store, 3));
  CHECK_FALSE(publish(store, 4));
  CHECK_FALSE(publish(store, 5));
  CHECK(store.skipped() == 2);
  CHECK(store.latest()->progress().version == 3);
  CHECK(whole(*first));
  CHECK(whole(*second));

  first.reset();
  CHECK(publish(store, 6));
  CHECK(store.latest()->progress().version == 6);
  CHECK(whole(*second));
  CHECK(store.skipped() == 2);
}

TEST_CASE("a buffer begun and not published goes back, and the latest snapshot stays") {
  SnapshotStore store(64, chunk_bytes, AlignedBuffer::plain, 2);
  REQUIRE(publish(store, 1));
  {
    const auto abandoned = store.begin();
    CHECK(abandoned);
    CHECK_FALSE(store.begin());
  }
  CHECK(store.latest()->progress().version == 1);
  CHECK(publish(store, 2));
}

TEST_CASE("there is no latest snapshot before the first publish") {
  const SnapshotStore store(64, chunk_bytes, AlignedBuffer::plain);
  CHECK(store.latest() == nullptr);
}

TEST_CASE("a snapshot outlives its store while a reader holds it") {
  std::shared_ptr<const Snapshot> held;
  {
    SnapshotStore store(chunk_bytes, chunk_bytes, AlignedBuffer::plain);
    REQUIRE(publish(store, 9));
    held = store.latest();
  }
  CHECK(held->progress().version == 9);
  CHECK(whole(*held));
}

TEST_CASE("the checksum of a chunk is that of its bytes now, in a buffer used again too") {
  SnapshotStore store(2 * chunk_bytes + 64, chunk_bytes, AlignedBuffer::plain, 2);
  for (std::uint64_t number = 1; number <= 6; ++number) {
    REQUIRE(publish(store, number));
    const auto snapshot = store.latest();
    const auto check = [&](std::size_t offset, std::size_t length) {
      const auto expected = crc32c(snapshot->bytes().subspan(offset, length));
      CHECK(snapshot->chunk_checksum(offset, length) == expected);
      CHECK(snapshot->chunk_checksum(offset, length) == expected);  // the kept one
    };
    check(0, chunk_bytes);
    check(chunk_bytes, chunk_bytes);
    check(2 * chunk_bytes, 64);
    check(chunk_bytes, 128);    // a chunk's beginning, shorter
    check(64, chunk_bytes);     // across two
    check(0, 2 * chunk_bytes);  // larger than one
    check(chunk_bytes, chunk_bytes);
  }
}

}  // namespace dpwa
