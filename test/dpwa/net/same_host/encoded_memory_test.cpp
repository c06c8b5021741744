#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "dpwa/base/random.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

// transport.encoding between nodes of one host: the memory that is read holds every bit, and what
// lands is what would have landed over TCP.

namespace dpwa {
namespace {

using test::PullingNode;
using test::ServedNode;

constexpr std::size_t elements = 300'001;  // three chunks of 512 KiB, the last one short
constexpr Codec all[] = {Codec::raw, Codec::fp16, Codec::bf16, Codec::int8};

AlignedBuffer shared(std::size_t bytes) {
  return AlignedBuffer::shared(bytes);
}

// Publishes values of many magnitudes.
void publish_noise(SnapshotStore& store, std::uint64_t seed, std::uint64_t version) {
  auto writer = store.begin();
  REQUIRE(writer);
  auto* values = reinterpret_cast<float*>(writer->bytes().data());
  Random random(seed);
  for (std::size_t i = 0; i < elements; ++i)
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
  PullingNode node({{"w1", {"127.0.0.1"}, port}}, elements, 1, same_host);
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
  ServedNode served(elements, {}, shared);
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
  ServedNode served(elements, {}, shared);
  publish_noise(served.local().store, 1, 2);
  const PullSpec spec = full_pull(0, test::patience);
  const Landed raw = pull(served.port(), true, Codec::raw, spec);
  CHECK(raw.arrival.bytes == 4 * elements);
  for (const Codec codec : all) CHECK((pull(served.port(), true, codec, spec) == raw));
}

}  // namespace dpwa
