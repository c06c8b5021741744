#include <doctest/doctest.h>
#include <openssl/evp.h>

#include <cmath>
#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

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

}  // namespace
}  // namespace dpwa::wire

namespace dpwa::wire {
namespace {

void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(std::byte(value >> (8 * i)));
}

// A tensor as the protocol writes it, without any check.
void put_tensor(std::vector<std::byte>& out, std::string_view name, int dtype, int rule,
                const std::vector<std::uint64_t>& shape) {
  put(out, name.size(), 2);
  for (const char c : name) out.push_back(std::byte(c));
  put(out, dtype, 1);
  put(out, rule, 1);
  put(out, shape.size(), 1);
  for (const std::uint64_t extent : shape) put(out, extent, 8);
}

std::vector<std::byte> with_one_tensor(std::string_view name, int dtype, int rule,
                                       const std::vector<std::uint64_t>& shape) {
  std::vector<std::byte> content;
  put(content, 1, 4);
  put_tensor(content, name, dtype, rule, shape);
  return sealed(content);
}

TEST_CASE("the fingerprint is the SHA-256 of its tag and the encoded tensor list") {
  const Manifest manifest = sample_manifest();
  const auto frame = encode(manifest, 1);
  const auto body = body_of(frame);
  std::string text = "dpwa-manifest-1";
  text.append(reinterpret_cast<const char*>(body.data()), body.size() - 4);
  Fingerprint digest{};
  REQUIRE(EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  CHECK(manifest.fingerprint() == digest);
}

TEST_CASE("a tensor with an unknown dtype or rule, a bad name or too many dimensions is refused") {
  REQUIRE(decode_manifest(with_one_tensor("w", 1, 1, {2, 3})).has_value());
  for (const int dtype : {0, 11, 255}) {
    CHECK(fault_of(decode_manifest(with_one_tensor("w", dtype, 3, {2}))) == Fault::bad_value);
  }
  for (const int rule : {0, 4, 255}) {
    CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, rule, {2}))) == Fault::bad_value);
  }
  CHECK(fault_of(decode_manifest(with_one_tensor("", 1, 1, {2}))) == Fault::bad_value);
  CHECK(fault_of(decode_manifest(with_one_tensor("a\nb", 1, 1, {2}))) == Fault::bad_value);
  const std::string long_name(256, 'n');
  CHECK(fault_of(decode_manifest(with_one_tensor(long_name, 1, 1, {2}))) == Fault::bad_value);
  const std::vector<std::uint64_t> deep(max_rank + 1, 1);
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, 1, deep))) == Fault::bad_value);
}

TEST_CASE("a dtype that does not fit its blend rule is refused") {
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 5, 1, {2}))) == Fault::bad_value);
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, 2, {2}))) == Fault::bad_value);
}

TEST_CASE("sizes that overflow are refused") {
  const std::uint64_t big = std::uint64_t{1} << 33;
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, 1, {big, big}))) == Fault::bad_value);
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, 1, {~0ull}))) == Fault::bad_value);
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 2, 1, {1ull << 48}))) == Fault::bad_value);

  std::vector<std::byte> content;
  put(content, 40, 4);
  for (int i = 0; i < 40; ++i) {
    put_tensor(content, std::string("w").append(std::to_string(i)), 9, 3, {1ull << 47});
  }
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::bad_value);
}

TEST_CASE("a name used twice is refused") {
  std::vector<std::byte> content;
  put(content, 2, 4);
  put_tensor(content, "w", 1, 1, {2});
  put_tensor(content, "w", 1, 1, {3});
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::bad_value);
}

TEST_CASE("a tensor count beyond the bytes sent or beyond the bound is refused") {
  std::vector<std::byte> content;
  put(content, 65536, 4);
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::truncated);
  content.clear();
  put(content, 65537, 4);
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::bad_value);
  content.clear();
  put(content, 0xFFFFFFFF, 4);
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::bad_value);
}

}  // namespace
}  // namespace dpwa::wire
