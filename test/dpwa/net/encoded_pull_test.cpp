#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>

#include "dpwa/base/checksum.h"
#include "dpwa/snapshot/encoded_chunk.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

// Pulls in each encoding, and what is refused of encoded replies and requests.

namespace dpwa {
namespace {

using test::FakePeer;
using test::PullingNode;
using test::PullSeen;
using test::RawSocket;
using test::ServedNode;

constexpr Codec kEncodings[] = {Codec::fp16, Codec::bf16, Codec::int8};
constexpr std::size_t encoded_elements = 300'001;  // several chunks of 512 KiB

std::vector<PeerAddress> only(std::uint16_t port) {
  return {{"w1", {"127.0.0.1"}, port}};
}

float sample(std::size_t i) {
  return std::sin(static_cast<float>(i)) * static_cast<float>(1 + i % 7);
}

// Publishes sample(0), sample(1), ...
void publish_samples(ServedNode& node) {
  auto writer = node.local().store.begin();
  REQUIRE(writer);
  auto* values = reinterpret_cast<float*>(writer->bytes().data());
  for (std::size_t i = 0; i < encoded_elements; ++i) values[i] = sample(i);
  node.local().store.publish(std::move(*writer), test::sound_progress(2));
}

// How many elements of what landed are further from the samples than the codec may leave them.
std::size_t count_wrong(PullingNode& node, Codec codec) {
  const double tolerance = codec == Codec::raw    ? 0
                           : codec == Codec::fp16 ? 0x1p-11
                           : codec == Codec::bf16 ? 0x1p-8
                                                  : 0x1p-7;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < encoded_elements; ++i) {
    const double scale = codec == Codec::int8 ? 7 : std::abs(sample(i)) + 1e-4;
    wrong += std::abs(node.landed()[i] - sample(i)) > tolerance * scale;
  }
  return wrong;
}

std::uint64_t wire_bytes(Codec codec) {
  return codec == Codec::int8 ? encoded_elements + (encoded_elements + 15) / 16
                              : 2 * encoded_elements;
}

std::uint64_t payload_of(Codec codec, std::size_t count, std::uint32_t chunk_bytes) {
  return payload_bytes(test::vector_manifest(count), codec, {0, 4 * count}, chunk_bytes);
}

// The reply to an encoded pull of a vector of `values`.
std::vector<std::byte> encoded_reply(const PullSeen& request, const std::vector<float>& values) {
  const Manifest manifest = test::vector_manifest(values.size());
  const Codec codec = request.pull.codec;
  wire::SnapshotReplyHead head;
  head.progress = test::sound_progress();
  head.codec = codec;
  head.length = manifest.total_bytes();
  head.chunk_bytes = request.pull.chunk_bytes;
  auto frame =
      wire::encode(head, request.request_id, payload_of(codec, values.size(), head.chunk_bytes));
  for (std::uint64_t at = 0; at < head.length; at += head.chunk_bytes) {
    const ByteRange part{at, std::min<std::uint64_t>(head.chunk_bytes, head.length - at)};
    std::vector<std::byte> payload(payload_bytes(manifest, codec, part));
    encode_chunk(manifest, codec, std::as_bytes(std::span(values)), part, payload);
    const auto header =
        wire::encode_chunk_header({static_cast<std::uint32_t>(payload.size()), crc32c(payload)});
    frame.insert(frame.end(), header.begin(), header.end());
    frame.insert(frame.end(), payload.begin(), payload.end());
  }
  return frame;
}

// A peer that understands `capabilities` and answers every pull by `reply`.
FakePeer::Script peer_that(std::uint32_t capabilities,
                           std::function<void(RawSocket&, const PullSeen&)> reply) {
  return [capabilities, reply = std::move(reply)](RawSocket& connection) {
    const auto hello = connection.read_frame();
    if (!hello) return;
    wire::Welcome answer;
    answer.node = "w1";
    answer.incarnation = 11;
    answer.capabilities = capabilities;
    connection.send(wire::encode(answer, hello->header.request_id));
    while (const auto request = test::read_pull(connection)) reply(connection, *request);
  };
}

}  // namespace

TEST_CASE("a pull brings the parameters in the encoding that was asked for") {
  ServedNode served(encoded_elements);
  publish_samples(served);
  for (const LandingMode mode : {LandingMode::difference, LandingMode::values}) {
    PullSpec spec;
    spec.timeout = test::patience;
    spec.mode = mode;
    for (const Codec codec : kEncodings) {
      CAPTURE(name_of(codec));
      PullingNode node(only(served.port()), encoded_elements);
      node.local().codec = codec;
      const Arrival arrival = node.pull(spec);
      REQUIRE(arrival.outcome == Outcome::mixed);
      CHECK(arrival.bytes == wire_bytes(codec));
      CHECK(count_wrong(node, codec) == 0);
      CHECK(count_wrong(node, Codec::raw) > encoded_elements / 2);
    }
  }
}

TEST_CASE("a block of an encoded pull brings that block") {
  ServedNode served(encoded_elements);
  publish_samples(served);
  PullSpec spec;
  spec.timeout = test::patience;
  spec.range = ByteRange{64 * 1000, 64 * 10'000};
  for (const Codec codec : kEncodings) {
    CAPTURE(name_of(codec));
    PullingNode node(only(served.port()), encoded_elements);
    node.local().codec = codec;
    REQUIRE(node.pull(spec).outcome == Outcome::mixed);
    CHECK(node.landed()[15'999] == 0);
    CHECK(node.landed()[16'001] == doctest::Approx(sample(16'001)).epsilon(0.06));
    CHECK(node.landed()[175'999] == doctest::Approx(sample(175'999)).epsilon(0.06));
    CHECK(node.landed()[176'000] == 0);
  }
}

TEST_CASE("a full pull brings every bit, whatever the encoding of the cluster") {
  ServedNode served(encoded_elements);
  publish_samples(served);
  for (const Codec codec : kEncodings) {
    PullingNode node(only(served.port()), encoded_elements);
    node.local().codec = codec;
    const Arrival arrival = node.pull(test::full_pull(0, test::patience));
    REQUIRE(arrival.outcome == Outcome::mixed);
    CHECK(arrival.bytes == 4 * encoded_elements);
    CHECK(count_wrong(node, Codec::raw) == 0);
  }
}

TEST_CASE("a peer that does not understand the encoding is asked for raw parameters") {
  std::atomic<int> asked{0};
  FakePeer old(peer_that(wire::capability(Codec::raw) | wire::capability(Codec::fp16),
                         [&](RawSocket& connection, const PullSeen& request) {
                           asked = static_cast<int>(request.pull.codec);
                           const std::vector<float> values(16, 4.0F);
                           connection.send(request.pull.codec == Codec::raw
                                               ? test::snapshot_frame(request, values)
                                               : encoded_reply(request, values));
                         }));
  const std::pair<Codec, Codec> cases[] = {
      {Codec::int8, Codec::raw}, {Codec::bf16, Codec::raw}, {Codec::fp16, Codec::fp16}};
  for (const auto& [wanted, expected] : cases) {
    PullingNode node(only(old.port()));
    node.local().codec = wanted;
    CHECK(node.pull().outcome == Outcome::mixed);
    CHECK(asked == static_cast<int>(expected));
    CHECK(std::ranges::all_of(node.landed(), [](float value) { return value == 4.0F; }));
  }
}

TEST_CASE("an encoded reply that is not what was asked for is rejected") {
  constexpr std::size_t count = 300'000;
  const auto wrong_reply = [](RawSocket& socket, PullSeen request, int kind) {
    const Codec asked = request.pull.codec;
    std::vector<float> values(count, 2.5F);
    switch (kind) {
      case 0:  // another codec, though of the same lengths
        request.pull.codec = asked == Codec::fp16 ? Codec::bf16 : Codec::fp16;
        socket.send(encoded_reply(request, values));
        break;
      case 1:  // raw
        socket.send(test::snapshot_frame(request, values));
        break;
      case 2: {  // a body that is a byte longer than it should be
        wire::SnapshotReplyHead head;
        head.progress = test::sound_progress();
        head.codec = asked;
        head.length = 4 * count;
        head.chunk_bytes = request.pull.chunk_bytes;
        const auto payload = payload_of(asked, count, head.chunk_bytes);
        socket.send(wire::encode(head, request.request_id, payload + 1));
        break;
      }
      case 3: {  // a checksum
        auto frame = encoded_reply(request, values);
        frame.back() ^= std::byte{1};
        socket.send(frame);
        break;
      }
      case 4: {  // an element that is no number
        values[count - 3] = std::nanf("");
        socket.send(encoded_reply(request, values));
        break;
      }
      default: {  // the length of a chunk, under a head that is right
        auto frame = encoded_reply(request, values);
        frame[wire::header_bytes + wire::snapshot_head_bytes] ^= std::byte{1};
        socket.send(frame);
        break;
      }
    }
  };
  for (int kind = 0; kind < 6; ++kind) {
    CAPTURE(kind);
    FakePeer hostile(peer_that(wire::all_codecs, [&](RawSocket& socket, const PullSeen& request) {
      wrong_reply(socket, request, kind);
    }));
    for (const Codec codec : kEncodings) {
      CAPTURE(name_of(codec));
      PullingNode node(only(hostile.port()), count);
      node.local().codec = codec;
      CHECK(node.pull().outcome == Outcome::rejected);
    }
  }
}

TEST_CASE("bytes after an encoded reply are noticed") {
  FakePeer hostile(peer_that(wire::all_codecs, [&](RawSocket& socket, const PullSeen& request) {
    auto frame = encoded_reply(request, std::vector<float>(16, 2.5F));
    frame.push_back(std::byte{0});
    socket.send(frame);
  }));
  PullingNode node(only(hostile.port()));
  node.local().codec = Codec::int8;
  CHECK(node.pull().outcome == Outcome::rejected);
}

TEST_CASE("a PULL that would encode half an element is answered with ERROR, a raw one is not") {
  ServedNode served;
  RawSocket caller(served.port());
  REQUIRE(test::introduce(caller));
  wire::Pull pull;
  pull.deadline_ms = 10000;
  pull.length = 21;
  for (const Codec codec : kEncodings) {
    pull.codec = codec;
    REQUIRE(caller.send(wire::encode(pull, 8)));
    const auto frame = caller.read_frame();
    REQUIRE(frame);
    REQUIRE(frame->header.type == wire::MessageType::error);
    CHECK(wire::decode_error(frame->body)->reason.find("within an element") != std::string::npos);
  }
  pull.codec = Codec::raw;
  REQUIRE(caller.send(wire::encode(pull, 8)));
  const auto frame = caller.read_frame();
  REQUIRE(frame);
  CHECK(frame->header.type == wire::MessageType::snapshot);
}

TEST_CASE("encoded replies that no caller reads do not take more than their share of memory") {
  constexpr std::size_t large = 16 << 20;  // 64 MiB: more than the sockets' buffers take
  ServedNode served(large);
  wire::Pull pull;
  pull.codec = Codec::fp16;
  pull.deadline_ms = 10000;
  pull.chunk_bytes = 16 << 20;
  std::vector<std::unique_ptr<RawSocket>> stalled;
  const auto ask = [&] {
    auto reader = std::make_unique<RawSocket>(served.port(), 4096);
    REQUIRE(test::introduce(*reader, large));
    REQUIRE(reader->send(wire::encode(pull, 2)));
    stalled.push_back(std::move(reader));
  };
  ask();
  REQUIRE(stalled[0]->read(wire::header_bytes));  // the reply has begun
  ask();
  const auto frame = stalled[1]->read_frame();
  REQUIRE(frame);
  CHECK(frame->header.type == wire::MessageType::busy);
  stalled[0].reset();
  CHECK(served.serves_an_honest_peer());
}

}  // namespace dpwa
