#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>

#include "dpwa/security/derive.h"

namespace dpwa {
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
