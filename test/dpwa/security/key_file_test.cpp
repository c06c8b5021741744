#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>

#include "dpwa/security/key_file.h"

namespace dpwa {
namespace {

const std::string digits(64, 'a');
const std::string other(64, '7');
constexpr const char* accepted =
    "; accepted: one or two lines of 64 hexadecimal digits, as dpwa keygen writes them";

std::string error_of(const std::string& text) {
  const auto keys = parse_keys(text, "k");
  return keys ? "none" : keys.error();
}

}  // namespace

TEST_CASE("a key file holds one or two keys between comments and blank lines") {
  const auto one = parse_keys("# a comment\n\n  " + digits + " # the key\r\n", "k");
  REQUIRE(one.has_value());
  REQUIRE(one->size() == 1);
  CHECK(one->front().bytes.front() == 0xAA);
  const auto two = parse_keys(digits + "\n" + other, "k");
  REQUIRE(two.has_value());
  REQUIRE(two->size() == 2);
  CHECK(two->back().bytes.back() == 0x77);
}

TEST_CASE("upper and lower case digits are the same key") {
  const auto lower = parse_keys(std::string(64, 'b'), "k");
  const auto upper = parse_keys(std::string(64, 'B'), "k");
  REQUIRE(lower.has_value());
  REQUIRE(upper.has_value());
  CHECK(lower->front() == upper->front());
}

TEST_CASE(
    "a key file that holds no sound key is refused by its line, and its text is not repeated") {
  CHECK(error_of("") == std::string("k: holds no key") + accepted);
  CHECK(error_of("# nothing\n\n") == std::string("k: holds no key") + accepted);
  CHECK(error_of("#\n" + std::string(62, 'a')) ==
        std::string("k:2: is too short: a key of 62 digits") + accepted);
  CHECK(error_of(std::string(66, 'a')) ==
        std::string("k:1: is too long: a key of 66 digits") + accepted);
  CHECK(error_of("secret words") == std::string("k:1: is not a key") + accepted);
  CHECK(error_of(std::string(63, 'a') + "g") == std::string("k:1: is not a key") + accepted);
  CHECK(error_of(std::string(64, '\0')) == std::string("k:1: is not a key") + accepted);
  CHECK(error_of(digits + "\n" + std::string(64, '0')) ==
        std::string("k:2: is not a secret: all its digits are zero") + accepted);
  CHECK(error_of(std::string(63, '0') + "1") == "none");
  CHECK(error_of(digits + "\n" + digits) == std::string("k:2: is the same key again") + accepted);
  CHECK(error_of(digits + "\n" + other + "\n" + std::string(64, '1')) ==
        std::string("k:3: is one key too many") + accepted);
}

TEST_CASE("what is written reads back") {
  const Keys keys{new_key(), new_key()};
  CHECK_FALSE(keys[0] == keys[1]);
  const auto again = parse_keys(key_file_text(keys).text(), "k");
  REQUIRE(again.has_value());
  REQUIRE(again->size() == 2);
  CHECK(again->at(0) == keys[0]);
  CHECK(again->at(1) == keys[1]);
}

namespace {

std::string hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

Key key_of(unsigned char first) {
  Key key;
  for (std::size_t i = 0; i < key_bytes; ++i) key.bytes[i] = static_cast<unsigned char>(first + i);
  return key;
}

}  // namespace

// Nodes of different versions must agree: the values never change.
TEST_CASE("what is derived from a key stays the same for ever") {
  const PreSharedKey derived = derive(key_of(0));
  CHECK(hexadecimal(derived.secret.bytes) ==
        "8314557bc40dc329e2b7a43956241ab608b5ca1f10af881f44017f036eb1bc07");
  CHECK(hexadecimal(derived.identity) == "a4d0c2d14306fc5cf8ddf0507bf5dfa8");
}

TEST_CASE("another key has another secret and another identity, and neither shows the key") {
  const PreSharedKey a = derive(key_of(0));
  const PreSharedKey b = derive(key_of(1));
  CHECK_FALSE(a.secret == b.secret);
  CHECK(a.identity != b.identity);
  CHECK_FALSE(a.secret == key_of(0));
  CHECK_FALSE(std::ranges::equal(a.identity, std::span(a.secret.bytes).first(a.identity.size())));
}

TEST_CASE("a key is named by its whole identity alone") {
  const PreSharedKey key = derive(key_of(0));
  auto name = key.identity;
  CHECK(key.is_named(name.data(), name.size()));
  CHECK_FALSE(key.is_named(name.data(), name.size() - 1));
  CHECK_FALSE(key.is_named(name.data(), 0));
  name.back() ^= 1;
  CHECK_FALSE(key.is_named(name.data(), name.size()));
}

}  // namespace dpwa
