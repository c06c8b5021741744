#include "dpwa/kvstore/values.h"

#include <doctest/doctest.h>

#include <set>

namespace dpwa::kvstore {
namespace {

TEST_CASE("keys: numbers come before texts, and are ordered by value") {
  const std::set<Key> keys{"b", 10, "a", -1, 9};
  std::string order;
  for (const Key& key : keys) order += key.text() + " ";
  CHECK(order == "-1 9 10 'a' 'b' ");
  CHECK(Key(7) == Key(std::int64_t{7}));
  CHECK(Key(7) != Key("7"));
}

TEST_CASE("keys: the hash of a key is the same on every machine") {
  CHECK(Key("fc1.weight").hash() == 0xfc5ab63896269edu);
  CHECK(Key(0).hash() == 0xa8c7f832281a39c5u);
  CHECK(Key(3).hash() == 0xc7c2bf3b330983e6u);
  CHECK(Key(-1).hash() == 0x8cf51a8bfca3883du);
}

TEST_CASE("keys: a text that is empty, too long or not plain is refused in words") {
  CHECK_FALSE(key_problem(5));
  CHECK_FALSE(key_problem(std::string(max_key_bytes, 'k')));
  CHECK(key_problem("") == "is empty");
  CHECK(key_problem(std::string(max_key_bytes + 1, 'k')) == "has more than 255 bytes");
  CHECK(key_problem("a\nb") == "is not UTF-8 or holds control characters");
  CHECK(Key("a\nb").text() == "'a?b'");
}

TEST_CASE("values: types and shapes that a store cannot hold are refused in words") {
  CHECK_FALSE(spec_problem({DType::bfloat16, {3, 4}}));
  CHECK_FALSE(spec_problem({DType::float32, {}}));
  CHECK(ValueSpec{DType::float32, {}}.elements() == 1);
  CHECK(ValueSpec{DType::float16, {10, 128}}.text() == "float16[10,128]");
  CHECK(spec_problem({DType::int64, {1}}) ==
        "is int64; accepted: float32, float64, float16, bfloat16");
  CHECK(spec_problem({DType::float32, std::vector<std::uint64_t>(17, 1)}) ==
        "has more than 16 dimensions");
  CHECK_FALSE(spec_problem({DType::float32, {std::uint64_t{1} << 46}}));
  CHECK(spec_problem({DType::float64, {std::uint64_t{1} << 46}}) == "has more than 2^48 bytes");
  CHECK(spec_problem({DType::float32, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}}) ==
        "has more than 2^48 bytes");
}

}  // namespace
}  // namespace dpwa::kvstore
