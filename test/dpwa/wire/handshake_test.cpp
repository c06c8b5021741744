#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

TEST_CASE("a HELLO survives the round trip") {
  Hello sent = sample_hello();
  sent.cluster = std::string(max_name_bytes, 'c');
  sent.node = std::string(max_name_bytes, 'n');
  sent.incarnation = ~std::uint64_t{0};
  sent.capabilities = ~0u;
  const auto frame = encode(sent, 3);
  CHECK(body_of(frame).size() == max_body_bytes(MessageType::hello));
  const auto hello = decode_hello(body_of(frame));
  REQUIRE(hello.has_value());
  CHECK(hello->role == Role::node);
  CHECK(hello->cluster == sent.cluster);
  CHECK(hello->node == sent.node);
  CHECK(hello->incarnation == sent.incarnation);
  CHECK(hello->capabilities == sent.capabilities);
  CHECK(hello->fingerprint == sent.fingerprint);
}

TEST_CASE("an observer has neither name nor fingerprint") {
  Hello observer{.role = Role::observer, .capabilities = 0, .cluster = "digits", .node = ""};
  const auto hello = decode_hello(body_of(encode(observer, 1)));
  REQUIRE(hello.has_value());
  CHECK(hello->role == Role::observer);

  const auto named = altered(encode(sample_hello(), 1), 0, std::uint8_t(Role::observer));
  CHECK(fault_of(decode_hello(named)) == Fault::bad_value);
  observer.fingerprint[31] = 1;
  CHECK_THROWS_AS(encode(observer, 1), std::invalid_argument);
}

TEST_CASE("a node without a name is refused") {
  const Hello observer{.role = Role::observer, .capabilities = 0, .cluster = "digits", .node = ""};
  const auto nameless = altered(encode(observer, 1), 0, std::uint8_t(Role::node));
  CHECK(fault_of(decode_hello(nameless)) == Fault::bad_value);
  Hello hello = sample_hello();
  hello.node.clear();
  CHECK_THROWS_AS(encode(hello, 1), std::invalid_argument);
}

TEST_CASE("unknown roles, states and reject codes are refused") {
  const auto hello = encode(sample_hello(), 1);
  for (const int role : {0, 3, 255}) {
    CHECK(fault_of(decode_hello(altered(hello, 0, std::uint8_t(role)))) == Fault::bad_value);
  }
  const auto welcome = encode(sample_welcome(), 1);
  for (const int state : {0, 4, 255}) {
    CHECK(fault_of(decode_welcome(altered(welcome, 0, std::uint8_t(state)))) == Fault::bad_value);
  }
  const auto reject = encode(Reject{RejectCode::model, "why"}, 1);
  for (const int code : {0, 7, 255}) {
    CHECK(fault_of(decode_reject(altered(reject, 0, std::uint8_t(code)))) == Fault::bad_value);
  }
}

TEST_CASE("reserved bytes of the handshake must be zero") {
  for (const std::size_t offset : {1, 2, 3}) {
    CHECK(fault_of(decode_hello(altered(encode(sample_hello(), 1), offset, 1))) ==
          Fault::bad_value);
    const auto welcome = encode(sample_welcome(), 1);
    CHECK(fault_of(decode_welcome(altered(welcome, offset, 1))) == Fault::bad_value);
  }
}

TEST_CASE("a name with control characters or broken UTF-8 never reaches the log") {
  const auto hello = encode(sample_hello(), 1);
  constexpr std::size_t first_letter_of_cluster = 50;
  for (const int byte : {0x00, 0x0A, 0x1B, 0x7F, 0x80, 0xFF}) {
    const auto body = altered(hello, first_letter_of_cluster, std::uint8_t(byte));
    CHECK(fault_of(decode_hello(body)) == Fault::bad_value);
  }
}

TEST_CASE("names that no peer would accept are not sent") {
  Hello hello = sample_hello();
  hello.cluster = "";
  CHECK_THROWS_AS(encode(hello, 1), std::invalid_argument);
  hello.cluster = std::string(max_name_bytes + 1, 'x');
  CHECK_THROWS_AS(encode(hello, 1), std::invalid_argument);
  hello.cluster = "two\nlines";
  CHECK_THROWS_AS(encode(hello, 1), std::invalid_argument);
  CHECK_THROWS_AS(encode(Welcome{}, 1), std::invalid_argument);
}

TEST_CASE("a WELCOME survives the round trip") {
  for (const NodeState state : {NodeState::joining, NodeState::ready, NodeState::finished}) {
    const std::string name(max_name_bytes, 'n');
    const std::string offer(max_offer_bytes, 'o');
    const auto frame = encode(Welcome{name, ~std::uint64_t{0}, ~0u, state, 99, 1e300, offer}, 1);
    CHECK(body_of(frame).size() == max_body_bytes(MessageType::welcome));
    const auto welcome = decode_welcome(body_of(frame));
    REQUIRE(welcome.has_value());
    CHECK(welcome->node == name);
    CHECK(welcome->same_host == offer);
    CHECK(welcome->incarnation == ~std::uint64_t{0});
    CHECK(welcome->capabilities == ~0u);
    CHECK(welcome->state == state);
    CHECK(welcome->lineage == 99);
    CHECK(welcome->clock == 1e300);
  }
}

TEST_CASE("a WELCOME whose clock is negative or not finite is refused") {
  Welcome welcome = sample_welcome();
  CHECK(fault_of(decode_welcome(altered(encode(welcome, 1), 31, 0xC0))) == Fault::bad_value);
  for (const double clock : {-1.0, std::nan(""), HUGE_VAL}) {
    welcome.clock = clock;
    CHECK_THROWS_AS(encode(welcome, 1), std::invalid_argument);
  }
  welcome.clock = 1.5 * 0x1p1023;  // with one more bit in its exponent: NaN
  CHECK(fault_of(decode_welcome(altered(encode(welcome, 1), 30, 0xF8))) == Fault::bad_value);
}

TEST_CASE("a REJECT survives the round trip with every code") {
  for (int code = 1; code <= 6; ++code) {
    const auto reject =
        decode_reject(body_of(encode(Reject{static_cast<RejectCode>(code), "because"}, 1)));
    REQUIRE(reject.has_value());
    CHECK(int(reject->code) == code);
    CHECK(reject->reason == "because");
  }
}

TEST_CASE("a reason too long or not printable is mended rather than lost") {
  const auto frame = encode(Reject{RejectCode::model, std::string(5000, 'x') + "\n"}, 1);
  CHECK(body_of(frame).size() == max_body_bytes(MessageType::reject));
  const auto reject = decode_reject(body_of(frame));
  REQUIRE(reject.has_value());
  CHECK(reject->reason == std::string(max_reason_bytes, 'x'));
  const auto two_lines = decode_reject(body_of(encode(Reject{RejectCode::model, "a\nb"}, 1)));
  REQUIRE(two_lines.has_value());
  CHECK(two_lines->reason == "a?b");
}

}  // namespace
}  // namespace dpwa::wire
