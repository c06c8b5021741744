#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/net/same_host/offer.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/memory_reader.h"
#include "test/support/vector_cluster.h"

// Pulls through shared memory, between two nodes in one process.

namespace dpwa {
namespace {

using test::PullingNode;
using test::ServedNode;

std::vector<PeerAddress> at(std::uint16_t port) {
  return {{"w1", {"127.0.0.1"}, port}};
}

bool landed_all(const PullingNode& node, float value) {
  return std::ranges::all_of(node.landed(), [=](float landed) { return landed == value; });
}

// Mappings of snapshots that only read.
std::size_t reader_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    const bool snapshot = line.find("memfd:dpwa-snapshot") != std::string::npos;
    if (snapshot && line.find(" r--s ") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a peer of this host is pulled from through its memory, every snapshot in full") {
  for (const std::size_t mapped_elements :
       {16UL, 1000UL, 3000000UL}) {  // less than a piece, and more
    CAPTURE(mapped_elements);
    ServedNode served(mapped_elements, {}, AlignedBuffer::shared);
    PullingNode node(at(served.port()), mapped_elements);
    for (int round = 1; round <= 5; ++round) {
      const Arrival arrival = node.pull();
      REQUIRE(arrival.outcome == Outcome::mixed);
      CHECK(arrival.progress.version == round);
      CHECK(arrival.bytes == 4 * mapped_elements);
      CHECK(landed_all(node, static_cast<float>(round)));
      CHECK(arrival.stats.finite);
      REQUIRE(test::eventually([&] { return served.publish(static_cast<float>(round + 1)); }));
    }
    CHECK(node.client().same_host(0));
    CHECK(node.local().traffic.same_host_pulls == 5);
    CHECK(node.local().traffic.bytes_received == 5 * 4 * mapped_elements);
    const auto& traffic = served.local().traffic;
    CHECK(test::eventually([&] { return traffic.bytes_served == 5 * 4 * mapped_elements; }));
    CHECK(traffic.same_host_served == 5);
    CHECK(traffic.snapshots_served == 5);
    CHECK(served.local().traffic.protocol_errors == 0);
    CHECK(node.local().traffic.protocol_errors == 0);
    CHECK(test::eventually([&] { return served.free_buffers() == 2; }));  // no lease is left
  }
}

TEST_CASE("a peer declines through its memory what it declines over TCP, on one connection") {
  ServedNode served(16, {}, AlignedBuffer::shared);
  PullingNode node(at(served.port()));
  REQUIRE(node.pull().outcome == Outcome::mixed);
  const auto connections = served.local().traffic.connections_accepted.load();
  CHECK(connections == 2);                         // TCP and Unix
  CHECK(node.pull().outcome == Outcome::skipped);  // nothing new
  served.local().state = wire::NodeState::joining;
  CHECK(node.pull().outcome == Outcome::not_ready);
  served.local().state = wire::NodeState::ready;
  REQUIRE(served.publish(2.0F));
  const bool mixed = test::eventually([&] { return node.pull().outcome == Outcome::mixed; });
  CHECK(mixed);  // after its brief back-off
  CHECK(landed_all(node, 2.0F));
  CHECK(served.local().traffic.connections_accepted == connections);
  CHECK(node.local().traffic.same_host_pulls == 2);
}

TEST_CASE("a block of a snapshot is read from memory alone, the rest of the landing stays") {
  constexpr std::size_t mapped_elements = 1 << 20;
  ServedNode served(mapped_elements, {}, AlignedBuffer::shared);
  PullingNode node(at(served.port()), mapped_elements);
  PullSpec spec;
  spec.timeout = test::patience;
  spec.range = ByteRange{64, 2 * mapped_elements};
  const Arrival arrival = node.pull(spec);
  REQUIRE(arrival.outcome == Outcome::mixed);
  CHECK(arrival.bytes == 2 * mapped_elements);
  CHECK(node.local().traffic.same_host_pulls == 1);
  const auto landed = node.landed();
  CHECK(landed[15] == 0.0F);
  CHECK(landed[16] == 1.0F);
  CHECK(landed[16 + mapped_elements / 2 - 1] == 1.0F);
  CHECK(landed[16 + mapped_elements / 2] == 0.0F);
}

TEST_CASE("nothing is handed over when either side has it off, or cannot share its memory") {
  ServerOptions server;
  bool client = true;
  BufferAllocator allocate = AlignedBuffer::shared;
  SUBCASE("the server has it off") {
    server.same_host = false;
  }
  SUBCASE("the caller has it off") {
    client = false;
  }
  SUBCASE("plain memory") {
    allocate = [](std::size_t bytes) { return AlignedBuffer(bytes); };
  }
  SUBCASE("memory from elsewhere") {
    allocate = [](std::size_t bytes) {
      const auto owner = std::make_shared<std::vector<float>>(bytes / sizeof(float));
      return AlignedBuffer({owner, reinterpret_cast<std::byte*>(owner->data())}, bytes);
    };
  }
  ServedNode served(16, server, allocate);
  PullingNode node(at(served.port()), 16, 1, client);
  REQUIRE(node.pull().outcome == Outcome::mixed);
  CHECK(landed_all(node, 1.0F));
  CHECK_FALSE(node.client().same_host(0));
  CHECK(node.local().traffic.same_host_pulls == 0);
  CHECK(test::eventually([&] { return served.local().traffic.snapshots_served == 1; }));
  CHECK(served.local().traffic.same_host_served == 0);
  CHECK(served.local().traffic.connections_accepted == 1);
  CHECK(reader_mappings() == 0);
  if (client) CHECK(test::offer_of(served.port(), test::sound_hello()).empty());
}

TEST_CASE("an observer is offered nothing") {
  ServedNode served(16, {}, AlignedBuffer::shared);
  CHECK_FALSE(test::offer_of(served.port(), test::sound_hello()).empty());
  wire::Hello observer;
  observer.role = wire::Role::observer;
  observer.cluster = "test";
  CHECK(test::offer_of(served.port(), observer).empty());
}

TEST_CASE("the memory of a peer that has gone is let go at once, and taken again when it is back") {
  ServerOptions options;
  options.port = net::free_ports(1)[0];
  std::optional<ServedNode> served;
  served.emplace(16, options, AlignedBuffer::shared);
  PullingNode node(at(options.port));
  REQUIRE(node.pull().outcome == Outcome::mixed);
  REQUIRE(served->publish(2.0F));
  REQUIRE(node.pull().outcome == Outcome::mixed);
  CHECK(reader_mappings() == SnapshotStore::default_buffers);
  served.reset();
  CHECK(test::eventually([] { return reader_mappings() == 0; }));
  CHECK(node.pull().outcome == Outcome::unreachable);

  served.emplace(16, options, AlignedBuffer::shared);
  REQUIRE(served->publish(3.0F));
  REQUIRE(served->publish(4.0F));
  const bool mixed = test::eventually([&] { return node.pull().outcome == Outcome::mixed; });
  REQUIRE(mixed);
  CHECK(landed_all(node, 4.0F));
  CHECK(node.local().traffic.same_host_pulls == 3);
}

TEST_CASE("a node that stops pulling lets the memory of its peers go") {
  ServedNode served(16, {}, AlignedBuffer::shared);
  {
    PullingNode node(at(served.port()));
    REQUIRE(node.pull().outcome == Outcome::mixed);
    CHECK(reader_mappings() == SnapshotStore::default_buffers);
    node.stop();
    CHECK(reader_mappings() == 0);
  }
  CHECK(served.serves_an_honest_peer());
}

}  // namespace dpwa

namespace dpwa::same_host {

TEST_CASE("an offer survives the way through its text") {
  const Offer offer{boot_id(), unique_socket_name()};
  CHECK_FALSE(offer.boot_id.empty());
  const auto parsed = parse_offer(to_text(offer));
  REQUIRE(parsed);
  CHECK(*parsed == offer);
}

TEST_CASE("socket names are never the same") {
  CHECK(unique_socket_name() != unique_socket_name());
}

TEST_CASE("a text that names no socket of this namespace is no offer") {
  CHECK(parse_offer("0f/dpwa-1-2"));
  for (const char* text : {"", "/", "0f/", "/dpwa", "0f", "0f/../etc", "0f/a/b", "0f/A", "0F/a",
                           "0f/a b", "0f/a\xC3\xA4"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_offer(text));
  }
  CHECK(parse_offer("0f/" + std::string(107, 'a')));
  CHECK_FALSE(parse_offer("0f/" + std::string(108, 'a')));
  CHECK_FALSE(parse_offer(std::string(65, 'a') + "/a"));
}

}  // namespace dpwa::same_host

// transport.encoding between nodes of one host: the memory that is read holds every bit, and what
// lands is what would have landed over TCP.

namespace dpwa {
namespace {

constexpr std::size_t mapped_elements = 300'001;  // three chunks of 512 KiB, the last one short
constexpr Codec all[] = {Codec::raw, Codec::fp16, Codec::bf16, Codec::int8};

// Publishes values of many magnitudes.
void publish_noise(SnapshotStore& store, std::uint64_t seed, std::uint64_t version) {
  auto writer = store.begin();
  REQUIRE(writer);
  auto* values = reinterpret_cast<float*>(writer->bytes().data());
  Random random(seed);
  for (std::size_t i = 0; i < mapped_elements; ++i)
    values[i] = static_cast<float>(random.normal(0, 1) * (i % 100 == 0 ? 1e-7 : 1 + i % 7));
  Progress progress;
  progress.version = version;
  progress.lineage = 5;
  progress.clock = static_cast<double>(version);
  store.publish(std::move(*writer), progress);
}

struct Landed {
  Arrival arrival;
  std::vector<std::uint32_t> bits;
  bool operator==(const Landed& other) const {
    const auto same = [](double a, double b) {
      return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    };
    const auto& [a, b] = std::pair(arrival.stats, other.arrival.stats);
    return bits == other.bits && same(a.squared_distance, b.squared_distance) &&
           a.finite == b.finite;
  }
};

Landed pull(std::uint16_t port, bool same_host, Codec codec, const PullSpec& spec) {
  PullingNode node({{"w1", {"127.0.0.1"}, port}}, mapped_elements, 1, same_host);
  publish_noise(node.local().store, 2, 2);
  node.local().codec = codec;
  Landed landed{node.pull(spec), {}};
  REQUIRE(landed.arrival.outcome == Outcome::mixed);
  CHECK(landed.arrival.same_host == same_host);
  CHECK(node.local().traffic.bytes_received == landed.arrival.bytes);
  for (const float value : node.landed())
    landed.bits.push_back(std::bit_cast<std::uint32_t>(value));
  return landed;
}

}  // namespace

TEST_CASE("parameters from a peer's memory land bit for bit as over TCP") {
  ServedNode served(mapped_elements, {}, AlignedBuffer::shared);
  publish_noise(served.local().store, 1, 2);
  PullSpec spec;
  spec.timeout = test::patience;
  SUBCASE("differences") {}
  SUBCASE("values") {
    spec.mode = LandingMode::values;
  }
  SUBCASE("a block, whose chunks begin elsewhere") {
    spec.range = ByteRange{64 * 1001, 64 * 15'000};
  }
  std::vector<Landed> from_memory;
  for (const Codec codec : all) {
    CAPTURE(name_of(codec));
    from_memory.push_back(pull(served.port(), true, codec, spec));
    const Landed over_tcp = pull(served.port(), false, codec, spec);
    if (codec == Codec::raw) {  // over TCP its sum of squares is taken in other parts
      CHECK((from_memory.back().bits == over_tcp.bits));
      CHECK(from_memory.back().arrival.stats.squared_distance ==
            doctest::Approx(over_tcp.arrival.stats.squared_distance).epsilon(1e-6));
    } else {
      CHECK((from_memory.back() == over_tcp));
    }
    CHECK(from_memory.back().arrival.bytes == over_tcp.arrival.bytes);
  }
  for (std::size_t i = 0; i < std::size(all); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE((from_memory[i] == from_memory[j]));
  }
  std::uint64_t read = 0;
  for (const Landed& landed : from_memory) read += landed.arrival.bytes;
  CHECK(served.local().traffic.same_host_served == std::size(all));
  CHECK(served.local().traffic.bytes_served > read);  // with those over TCP
}

TEST_CASE("a full pull through memory brings every bit, whatever the encoding of the cluster") {
  ServedNode served(mapped_elements, {}, AlignedBuffer::shared);
  publish_noise(served.local().store, 1, 2);
  const PullSpec spec = test::full_pull(0, test::patience);
  const Landed raw = pull(served.port(), true, Codec::raw, spec);
  CHECK(raw.arrival.bytes == 4 * mapped_elements);
  for (const Codec codec : all) CHECK((pull(served.port(), true, codec, spec) == raw));
}

}  // namespace dpwa
