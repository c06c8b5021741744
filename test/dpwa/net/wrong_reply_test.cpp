#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/one_peer.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/vector_cluster.h"

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
  SUBCASE("a wrong length of a chunk") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      Bytes frame = sound_reply(request);
      frame[payload_at(1) - 8] ^= std::byte{0x40};
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
  SUBCASE("fewer parameters") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      socket.send(test::snapshot_frame(request, std::vector<float>(OnePeer::elements - 1, 2.5F)));
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
  OnePeer pair(reply);
  pair.check_harmless(Outcome::rejected);
}

}  // namespace dpwa

// What a server makes of the requests of callers that it has made welcome.

namespace dpwa {
namespace {

using test::Bytes;
using test::header;
using test::OneCaller;

}  // namespace

TEST_CASE_FIXTURE(OneCaller, "a welcome caller that breaks the protocol is dropped and counted") {
  Bytes sent;
  SUBCASE("a second HELLO") {
    sent = wire::encode(test::sound_hello(), 1);
  }
  SUBCASE("a MANIFEST that nobody asked for") {
    sent = wire::encode(test::vector_manifest(16), 2);
  }
  SUBCASE("a PULL of another length") {
    sent = test::joined(header(wire::MessageType::pull, 4), Bytes(4));
  }
  {
    RawSocket hostile(node.port());
    REQUIRE(test::introduce(hostile));
    REQUIRE(hostile.send(sent));
    CHECK(hostile.ended_by_other_side());
  }
  CHECK(protocol_errors() == 1);
  check_unharmed();
}

TEST_CASE_FIXTURE(OneCaller, "a PULL of bytes that are not there is answered with ERROR") {
  wire::Pull pull;
  pull.deadline_ms = 10000;
  SUBCASE("it begins beyond the end") {
    pull.offset = 128;
  }
  SUBCASE("it ends beyond the end") {
    pull.length = 65;
  }
  {
    RawSocket caller(node.port());
    REQUIRE(test::introduce(caller));
    REQUIRE(caller.send(wire::encode(pull, 8)));
    const auto frame = caller.read_frame();
    REQUIRE(frame);
    CHECK(frame->header.type == wire::MessageType::error);
    CHECK(frame->header.request_id == 8);
    const auto error = wire::decode_error(frame->body);
    REQUIRE(error.has_value());
    CHECK(error->reason.find("is not within 64 bytes") != std::string::npos);
  }
  check_unharmed();
}

TEST_CASE_FIXTURE(OneCaller, "a PULL of a part of the snapshot is answered with that part") {
  wire::Pull pull;
  pull.deadline_ms = 10000;
  pull.length = 20;
  RawSocket caller(node.port());
  REQUIRE(test::introduce(caller));
  REQUIRE(caller.send(wire::encode(pull, 8)));
  const auto frame = caller.read_frame();
  REQUIRE(frame);
  REQUIRE(frame->header.type == wire::MessageType::snapshot);
  CHECK(frame->body.size() == wire::snapshot_head_bytes + wire::chunk_header_bytes + 20);
}

TEST_CASE_FIXTURE(OneCaller, "a PULL that has no time left does no harm") {
  {
    RawSocket caller(node.port());
    REQUIRE(test::introduce(caller));
    REQUIRE(caller.send(wire::encode(wire::Pull{}, 8)));  // deadline 0
    caller.read_frame();  // the reply got away in time, or the connection was closed
  }
  check_unharmed();
}

TEST_CASE("an observer is welcome without a model, and may ask for the status") {
  test::ServedNode node;
  RawSocket observer(node.port());
  wire::Hello hello;
  hello.role = wire::Role::observer;
  hello.cluster = "test";
  REQUIRE(observer.send(wire::encode(hello, 1)));
  REQUIRE(observer.read_frame());
  REQUIRE(observer.send(wire::encode_empty(wire::MessageType::status_request, 2)));
  const auto frame = observer.read_frame();
  REQUIRE(frame);
  const auto status = wire::decode_status(frame->body);
  REQUIRE(status.has_value());
  CHECK(status->json == "{}");
}

}  // namespace dpwa
