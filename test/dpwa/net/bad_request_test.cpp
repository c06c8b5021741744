#include <doctest/doctest.h>

#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/vector_cluster.h"

// What a server makes of the requests of callers that it has made welcome.

namespace dpwa {
namespace {

using test::Bytes;
using test::header;
using test::OneCaller;
using test::RawSocket;

}  // namespace

TEST_CASE_FIXTURE(OneCaller, "a welcome caller that breaks the protocol is dropped and counted") {
  Bytes sent;
  SUBCASE("a second HELLO") {
    sent = wire::encode(test::sound_hello(), 1);
  }
  SUBCASE("a MANIFEST that nobody asked for") {
    sent = wire::encode(test::vector_manifest(16), 2);
  }
  SUBCASE("noise") {
    sent.assign(64, std::byte{0x5A});
  }
  SUBCASE("a PULL with a wrong checksum") {
    sent = wire::encode(wire::Pull{}, 2);
    sent.back() ^= std::byte{1};
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
  SUBCASE("it is as large as can be said") {
    pull.offset = 64;
    pull.length = (std::uint64_t{1} << 48) - 64;
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
