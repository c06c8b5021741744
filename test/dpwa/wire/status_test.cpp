#include <doctest/doctest.h>

#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

TEST_CASE("a STATUS survives the round trip up to its bound") {
  for (const std::string& json : {std::string("{}"), std::string(max_status_bytes, 'x')}) {
    const auto frame = encode(Status{json}, 1);
    CHECK(body_of(frame).size() <= max_body_bytes(MessageType::status));
    const auto status = decode_status(body_of(frame));
    REQUIRE(status.has_value());
    CHECK(status->json == json);
  }
}

TEST_CASE("a STATUS that no peer would accept is not sent") {
  CHECK_THROWS_AS(encode(Status{std::string(max_status_bytes + 1, 'x')}, 1), std::invalid_argument);
  CHECK_THROWS_AS(encode(Status{"{\n}"}, 1), std::invalid_argument);
}

TEST_CASE("an ERROR survives the round trip, its reason mended") {
  const auto error = decode_error(body_of(encode(Error{"no such\trange"}, 1)));
  REQUIRE(error.has_value());
  CHECK(error->reason == "no such?range");
  const auto longest = encode(Error{std::string(max_reason_bytes + 1, 'x')}, 1);
  CHECK(body_of(longest).size() == max_body_bytes(MessageType::error));
}

TEST_CASE("a message without fields is its checksum alone") {
  for (const MessageType type :
       {MessageType::manifest_request, MessageType::not_modified, MessageType::not_ready,
        MessageType::busy, MessageType::status_request}) {
    const auto frame = encode_empty(type, 77);
    CHECK(frame.size() == header_bytes + 4);
    CHECK(header_of(frame).type == type);
    CHECK(header_of(frame).request_id == 77);
    CHECK(decode_empty(body_of(frame)).has_value());
  }
  const std::vector<std::byte> one_byte(1);
  const auto more = decode_empty(sealed(one_byte));
  REQUIRE_FALSE(more.has_value());
  CHECK(more.error().fault == Fault::bad_length);
}

}  // namespace
}  // namespace dpwa::wire
