#include <doctest/doctest.h>

#include <string>

#include "dpwa/snapshot/mark.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/vector_cluster.h"

// What a server makes of callers whose handshake is wrong, slow or broken off.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::header;
using test::OneCaller;
using test::patched;
using test::RawSocket;
using test::ServedNode;

Bytes hello_frame() {
  return wire::encode(test::sound_hello(), 1);
}

}  // namespace

TEST_CASE_FIXTURE(OneCaller, "bytes that are no HELLO end the connection and are counted") {
  Bytes sent;
  SUBCASE("noise") {
    for (int i = 0; i < 1000; ++i) sent.push_back(static_cast<std::byte>(i * 37 + 11));
  }
  SUBCASE("a wrong body checksum") {
    sent = hello_frame();
    sent.back() ^= std::byte{1};
  }
  SUBCASE("a HELLO of an absurd length") {
    sent = header(wire::MessageType::hello, 0x7FFFFFFFFFFFFFFF);
  }
  SUBCASE("a HELLO with bytes after its end") {
    const auto body = Bytes(40, std::byte{0});
    sent = test::joined(header(wire::MessageType::hello, body.size()), body);
  }
  SUBCASE("PULL before HELLO") {
    sent = wire::encode(wire::Pull{}, 1);
  }
  SUBCASE("the header of a MANIFEST, whose body is not waited for") {
    sent = header(wire::MessageType::manifest, 20'000'000);
  }
  SUBCASE("a message that only a server sends") {
    sent = wire::encode_empty(wire::MessageType::busy, 1);
  }
  {
    RawSocket hostile(node.port());
    REQUIRE(hostile.send(sent));
    CHECK(hostile.ended_by_other_side());
  }
  CHECK(protocol_errors() == 1);
  check_unharmed();
}

TEST_CASE_FIXTURE(OneCaller, "a caller that leaves in the middle of a frame is no protocol error") {
  const Bytes hello = hello_frame();
  std::size_t sent = 0;
  SUBCASE("before the first byte") {}
  SUBCASE("in the header") {
    sent = 17;
  }
  SUBCASE("in the body") {
    sent = hello.size() - 3;
  }
  {
    RawSocket hostile(node.port());
    REQUIRE(hostile.send(std::span(hello).first(sent)));
  }
  check_unharmed();
  CHECK(protocol_errors() == 0);
}

TEST_CASE_FIXTURE(OneCaller, "another protocol version is refused by name, whatever follows it") {
  RawSocket caller(node.port());
  REQUIRE(caller.send(patched(header(wire::MessageType::hello, 40), 4, 2)));
  const auto frame = caller.read_frame();
  REQUIRE(frame);
  const auto reject = wire::decode_reject(frame->body);
  REQUIRE(reject.has_value());
  CHECK(reject->code == wire::RejectCode::version);
  CHECK(reject->reason == "the frame has protocol version 2; accepted: 1");
  CHECK(caller.ended_by_other_side());
  check_unharmed();
}

TEST_CASE_FIXTURE(OneCaller, "a caller that does not belong here is rejected with the reason") {
  wire::Hello hello = test::sound_hello();
  hello.cluster = "production";  // admission_test.cpp has the others
  {
    RawSocket caller(node.port());
    REQUIRE(caller.send(wire::encode(hello, 21)));
    const auto frame = caller.read_frame();
    REQUIRE(frame);
    CHECK(frame->header.type == wire::MessageType::reject);
    CHECK(frame->header.request_id == 21);
    const auto reject = wire::decode_reject(frame->body);
    REQUIRE(reject.has_value());
    CHECK(reject->code == wire::RejectCode::cluster);
    CHECK_FALSE(reject->reason.empty());
    CHECK(caller.ended_by_other_side());
  }
  check_unharmed();
}

TEST_CASE_FIXTURE(OneCaller, "a call that comes back to the process that made it has no answer") {
  wire::Hello hello = test::sound_hello();
  hello.node = node.local().name;
  hello.incarnation = node.local().incarnation;
  {
    RawSocket caller(node.port());
    REQUIRE(caller.send(wire::encode(hello, 1)));
    CHECK(caller.ended_by_other_side());
  }
  ++hello.incarnation;  // another process of that name
  RawSocket caller(node.port());
  REQUIRE(caller.send(wire::encode(hello, 1)));
  const auto frame = caller.read_frame();
  REQUIRE(frame);
  CHECK(frame->header.type == wire::MessageType::reject);
}

TEST_CASE_FIXTURE(OneCaller, "a caller with another model is asked for its manifest") {
  RawSocket caller(node.port());
  REQUIRE(caller.send(wire::encode(test::sound_hello(17), 5)));
  const auto asked = caller.read_frame();
  REQUIRE(asked);
  REQUIRE(asked->header.type == wire::MessageType::manifest_request);
  std::uint64_t errors = 0;
  SUBCASE("and rejected with the name of the tensor when it sends it") {
    REQUIRE(caller.send(wire::encode(test::vector_manifest(17), 5)));
    const auto frame = caller.read_frame();
    REQUIRE(frame);
    const auto reject = wire::decode_reject(frame->body);
    REQUIRE(reject.has_value());
    CHECK(reject->code == wire::RejectCode::model);
    CHECK(reject->reason.find("'x'") != std::string::npos);
  }
  SUBCASE("and dropped when that is far larger than the own one") {
    REQUIRE(caller.send(header(wire::MessageType::manifest, (4U << 20) + 1)));
    errors = 1;
  }
  SUBCASE("and dropped when it sends something else") {
    REQUIRE(caller.send(wire::encode(wire::Pull{}, 6)));
    errors = 1;
  }
  CHECK(caller.ended_by_other_side());
  CHECK(protocol_errors() == errors);
  check_unharmed();
}

TEST_CASE("callers with other models are asked for their manifests one at a time") {
  test::ServedNode node;
  RawSocket first(node.port());
  REQUIRE(first.send(wire::encode(test::sound_hello(17), 5)));
  REQUIRE(first.read_frame()->header.type == wire::MessageType::manifest_request);
  RawSocket second(node.port());
  REQUIRE(second.send(wire::encode(test::sound_hello(18), 5)));
  RawSocket honest(node.port());
  REQUIRE(test::introduce(honest));
  CHECK_FALSE(second.stirs_within(0ms));
  REQUIRE(first.send(wire::encode(test::vector_manifest(17), 5)));
  CHECK(first.read_frame()->header.type == wire::MessageType::reject);
  CHECK(first.ended_by_other_side());
  CHECK(second.read_frame()->header.type == wire::MessageType::manifest_request);
  REQUIRE(second.send(wire::encode(test::vector_manifest(18), 5)));
  CHECK(second.read_frame()->header.type == wire::MessageType::reject);
  RawSocket third(node.port());
  REQUIRE(third.send(wire::encode(test::sound_hello(17), 5)));
  CHECK(third.read_frame()->header.type == wire::MessageType::manifest_request);
}

TEST_CASE("a caller whose settings alone differ is welcome, and is asked for its manifest once") {
  test::ServedNode node;
  const Manifest theirs = with_mark(test::vector_manifest(16), setting_mark("--lr", "0.1"));
  wire::Hello hello = test::sound_hello();
  hello.fingerprint = theirs.stated_fingerprint();
  const auto answer = [&](RawSocket& caller) {
    const auto frame = caller.read_frame();
    REQUIRE(frame);
    return frame->header.type;
  };
  RawSocket first(node.port());
  REQUIRE(first.send(wire::encode(hello, 5)));
  REQUIRE(answer(first) == wire::MessageType::manifest_request);
  RawSocket second(node.port());
  REQUIRE(second.send(wire::encode(hello, 6)));
  REQUIRE(first.send(wire::encode(theirs, 5)));
  CHECK(answer(first) == wire::MessageType::welcome);
  CHECK(answer(second) == wire::MessageType::welcome);

  // A caller that states the fingerprint of something else than it sends is refused.
  hello.fingerprint = with_mark(theirs, setting_mark("--seed", "2")).stated_fingerprint();
  RawSocket liar(node.port());
  REQUIRE(liar.send(wire::encode(hello, 7)));
  REQUIRE(answer(liar) == wire::MessageType::manifest_request);
  REQUIRE(liar.send(wire::encode(theirs, 7)));
  CHECK(answer(liar) == wire::MessageType::reject);
}

TEST_CASE("a caller that never completes its handshake is dropped when the time for it is up") {
  ServerOptions options = OneCaller::options();
  options.handshake_timeout = 500ms;
  ServedNode node(16, options);
  const Bytes hello = hello_frame();
  RawSocket hostile(node.port());
  SUBCASE("it says nothing") {}
  SUBCASE("it sends a byte at a time") {
    for (std::size_t i = 0; i + 1 < hello.size(); ++i) {
      if (!hostile.send(std::span(hello).subspan(i, 1)) || hostile.stirs_within(10ms)) break;
    }
  }
  SUBCASE("it stops in the manifest") {
    REQUIRE(hostile.send(wire::encode(test::sound_hello(17), 1)));
    REQUIRE(
        hostile.send(test::joined(header(wire::MessageType::manifest, 20'000'000), Bytes(1000))));
  }
  CHECK(hostile.ended_by_other_side());
  CHECK(node.serves_an_honest_peer());
}

}  // namespace dpwa
