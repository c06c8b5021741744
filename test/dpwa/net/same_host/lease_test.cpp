#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/memory_reader.h"

// How long a reader may keep the memory of a snapshot, and what happens then.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::MemoryReader;
using test::ServedNode;

constexpr std::size_t lent_elements = 1000;
constexpr std::size_t bytes = 4 * lent_elements;

MemoryReader reader_of(ServedNode& node, const std::string& name = "w2") {
  wire::Hello hello = test::sound_hello(lent_elements);
  hello.node = name;
  return MemoryReader(node.port(), hello);
}

// What the reader sees of the snapshot that it was handed.
bool holds(const MemoryReader& reader, float value) {
  const auto mapped = reader.mapping().bytes({0, bytes});
  const std::span values(reinterpret_cast<const float*>(mapped.data()), lent_elements);
  return std::ranges::all_of(values, [=](float seen) { return seen == value; });
}

}  // namespace

TEST_CASE("a buffer is not used again while a reader holds it, and is as soon as it is released") {
  ServedNode node(lent_elements, {}, AlignedBuffer::shared);
  MemoryReader reader = reader_of(node);
  const auto mapped = reader.pull(10s);
  REQUIRE(mapped);
  for (int version = 2; version < 10; ++version) {
    REQUIRE(node.publish(static_cast<float>(version)));  // the publisher is not held up
    CHECK(holds(reader, 1.0F));
    CHECK(reader.mapping().generation() == mapped->place.mark);
  }
  CHECK(node.free_buffers() == 1);
  REQUIRE(reader.release(true));
  CHECK(test::eventually([&] { return node.free_buffers() == 2; }));
  CHECK(test::eventually([&] { return node.local().traffic.same_host_served == 1; }));
  CHECK(node.local().traffic.same_host_leases_expired == 0);
  CHECK(reader.mapping().generation() != mapped->place.mark);  // begun and abandoned just now
}

TEST_CASE("a snapshot that the reader did not take in full does not count as served") {
  ServedNode node(lent_elements, {}, AlignedBuffer::shared);
  MemoryReader reader = reader_of(node);
  REQUIRE(reader.pull(10s));
  REQUIRE(reader.release(false));
  REQUIRE(reader.pull(10s));
  CHECK(node.local().traffic.same_host_served == 0);
  CHECK(node.local().traffic.snapshots_served == 0);
}

TEST_CASE("every snapshot lies in a buffer that was shared at the beginning") {
  ServedNode node(lent_elements, {}, AlignedBuffer::shared);
  MemoryReader reader = reader_of(node);
  CHECK(reader.buffers() == SnapshotStore::default_buffers);
  for (int version = 1; version < 12; ++version) {
    const auto mapped = reader.pull(10s);
    REQUIRE(mapped);
    CHECK(mapped->progress.version == version);
    CHECK(holds(reader, static_cast<float>(version)));
    REQUIRE(reader.release(true));
    REQUIRE(test::eventually([&] { return node.publish(static_cast<float>(version + 1)); }));
  }
}

TEST_CASE("the lease of a reader that stands still expires, and the reader can tell") {
  ServerOptions options;
  std::chrono::milliseconds stated = 1s;
  SUBCASE("at the deadline that it stated") {}
  SUBCASE("at the longest time that the server allows") {
    options.max_reply_time = 1s;
    stated = std::chrono::hours(24);
  }
  ServedNode node(lent_elements, options, AlignedBuffer::shared);
  MemoryReader reader = reader_of(node);
  const auto mapped = reader.pull(stated);
  REQUIRE(mapped);
  REQUIRE(node.publish(2.0F));
  CHECK(node.free_buffers() == 1);
  CHECK(holds(reader, 1.0F));
  CHECK(test::eventually([&] { return node.free_buffers() == 2; }));
  CHECK(test::eventually([&] { return node.local().traffic.same_host_leases_expired == 1; }));
  CHECK(node.local().traffic.same_host_served == 0);
  CHECK(reader.mapping().generation() != mapped->place.mark);
  CHECK(reader.tcp().ended_by_other_side());
}

TEST_CASE("the lease of a reader that dies ends at once") {
  ServedNode node(lent_elements, {}, AlignedBuffer::shared);
  {
    MemoryReader reader = reader_of(node);
    REQUIRE(reader.pull(10s));
    REQUIRE(node.publish(2.0F));
    CHECK(node.free_buffers() == 1);
  }
  CHECK(test::eventually([&] { return node.free_buffers() == 2; }, 5s));
  CHECK(node.local().traffic.same_host_leases_expired == 0);
}

TEST_CASE("readers of every snapshot cost publishes, never the publisher's time") {
  ServedNode node(lent_elements, {}, AlignedBuffer::shared);
  std::vector<MemoryReader> readers;
  for (int version = 1; version <= 3; ++version) {
    readers.push_back(reader_of(node, version < 3 ? "w2" : "w3"));
    REQUIRE(readers.back().pull(10s));
    if (version < 3) REQUIRE(node.publish(static_cast<float>(version + 1)));
  }
  CHECK_FALSE(node.publish(4.0F));
  CHECK(node.local().store.skipped() == 1);
  for (int version = 1; version <= 3; ++version)
    CHECK(holds(readers[static_cast<std::size_t>(version - 1)], static_cast<float>(version)));
  REQUIRE(readers[0].release(true));
  CHECK(test::eventually([&] { return node.publish(4.0F); }));
}

TEST_CASE("more readers at once than replies are allowed are told to come back") {
  ServerOptions options;
  options.max_replies = 1;
  ServedNode node(lent_elements, options, AlignedBuffer::shared);
  MemoryReader first = reader_of(node);
  MemoryReader second = reader_of(node);
  REQUIRE(first.pull(10s));
  CHECK_FALSE(second.pull(10s));
  CHECK(second.last_reply() == wire::MessageType::busy);
  REQUIRE(first.release(true));
  CHECK(test::eventually([&] { return second.pull(10s).has_value(); }));
}

TEST_CASE("a server that stops gives a reader a moment, and the reader keeps what it was handed") {
  ServerOptions options;
  options.drain_time = 50ms;
  options.max_reply_time = std::chrono::hours(1);  // which this test would take
  std::optional<ServedNode> node;
  node.emplace(lent_elements, options, AlignedBuffer::shared);
  MemoryReader reader = reader_of(*node);
  const auto mapped = reader.pull(std::chrono::hours(1));
  REQUIRE(mapped);
  node.reset();
  CHECK(reader.tcp().ended_by_other_side());
  CHECK(holds(reader, 1.0F));
  CHECK(reader.mapping().generation() == mapped->place.mark);
}

}  // namespace dpwa
