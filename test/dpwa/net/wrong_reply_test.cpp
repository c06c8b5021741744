#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "test/dpwa/net/one_peer.h"

// What a node makes of a peer whose answers are wrong.

namespace dpwa {
namespace {

using test::OnePeer;
using test::payload_at;
using test::PullSeen;
using test::RawSocket;
using test::sound_reply;
using test::vector_of;
using Bytes = std::vector<std::byte>;

}  // namespace

TEST_CASE("a sound reply is blended: what the other cases differ from") {
  OnePeer pair(
      [](RawSocket& socket, const PullSeen& request) { socket.send(sound_reply(request)); });
  CHECK(pair.step().outcome == Outcome::mixed);
  CHECK(std::ranges::all_of(pair.node().values(), [](float value) { return value == 2.0F; }));
}

TEST_CASE("a reply that is not what was asked for is rejected and leaves the model alone") {
  OnePeer::Reply reply;
  SUBCASE("a wrong checksum in the last chunk") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      Bytes frame = sound_reply(request);
      frame.back() ^= std::byte{1};
      socket.send(frame);
    };
  }
  SUBCASE("a wrong checksum in the middle") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      Bytes frame = sound_reply(request);
      frame[payload_at(1) + 7] ^= std::byte{0x80};
      socket.send(frame);
    };
  }
  SUBCASE("a wrong length of a chunk") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      Bytes frame = sound_reply(request);
      frame[payload_at(1) - 8] ^= std::byte{0x40};
      socket.send(frame);
    };
  }
  SUBCASE("a damaged head") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      Bytes frame = sound_reply(request);
      frame[wire::header_bytes + 16] ^= std::byte{1};
      socket.send(frame);
    };
  }
  SUBCASE("a damaged header") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      Bytes frame = sound_reply(request);
      frame[16] ^= std::byte{1};
      socket.send(frame);
    };
  }
  SUBCASE("parameters that are not numbers") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      auto values = vector_of(2.5F);
      values.back() = std::numeric_limits<float>::quiet_NaN();
      socket.send(test::snapshot_frame(request, values));
    };
  }
  SUBCASE("parameters that are infinite") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      auto values = vector_of(2.5F);
      values.front() = -std::numeric_limits<float>::infinity();
      socket.send(test::snapshot_frame(request, values));
    };
  }
  SUBCASE("fewer parameters") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      socket.send(test::snapshot_frame(request, std::vector<float>(OnePeer::elements - 1, 2.5F)));
    };
  }
  SUBCASE("more parameters") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      socket.send(test::snapshot_frame(request, std::vector<float>(OnePeer::elements + 1, 2.5F)));
    };
  }
  SUBCASE("an absurd length") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      socket.send(wire::encode_header(
          {wire::MessageType::snapshot, request.request_id, 0x7FFFFFFFFFFFFFFF}));
    };
  }
  SUBCASE("other chunks") {
    reply = [](RawSocket& socket, PullSeen request) {
      request.pull.chunk_bytes *= 2;
      socket.send(sound_reply(request));
    };
  }
  SUBCASE("chunks without the checksums that were asked for") {
    reply = [](RawSocket& socket, PullSeen request) {
      request.pull.unchecked_chunks = true;
      socket.send(sound_reply(request));
    };
  }
  SUBCASE("an answer to another request") {
    reply = [](RawSocket& socket, PullSeen request) {
      ++request.request_id;
      socket.send(sound_reply(request));
    };
  }
  SUBCASE("a message that is no reply to a pull") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      wire::Welcome welcome;
      welcome.node = "w2";
      socket.send(wire::encode(welcome, request.request_id));
    };
  }
  SUBCASE("a decline whose checksum is wrong") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      Bytes frame = wire::encode_empty(wire::MessageType::busy, request.request_id);
      frame.back() ^= std::byte{1};
      socket.send(frame);
    };
  }
  SUBCASE("a decline and something more") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      Bytes frame = wire::encode_empty(wire::MessageType::busy, request.request_id);
      frame.push_back(std::byte{0});
      socket.send(frame);
    };
  }
  SUBCASE("ERROR") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      socket.send(wire::encode(wire::Error{"no such range"}, request.request_id));
    };
  }
  SUBCASE("noise") {
    reply = [](RawSocket& socket, const PullSeen&) { socket.send(std::string(500, '#')); };
  }
  OnePeer pair(reply);
  pair.check_harmless(Outcome::rejected);
}

}  // namespace dpwa
