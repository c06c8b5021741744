#include "dpwa/base/plain_text.h"

#include <doctest/doctest.h>

namespace dpwa::wire {
namespace {

TEST_CASE("printable text in any script is plain") {
  CHECK(is_plain_text(""));
  CHECK(is_plain_text("layer1.0.conv-2 (frozen) ~"));
  CHECK(is_plain_text("Knoten-\xC3\xA4 \xE8\x8A\x82\xE7\x82\xB9 \xF0\x9F\x98\x80"));
}

TEST_CASE("control characters are not plain") {
  for (int c = 0; c < 0x20; ++c) CHECK_FALSE(is_plain_text(std::string("a") + char(c) + "b"));
  CHECK_FALSE(is_plain_text("\x7F"));
  CHECK_FALSE(
      is_plain_text("\xC2\x9B"
                    "31m"));  // C1 control sequence introducer
  CHECK_FALSE(
      is_plain_text("a\xE2\x80\xA8"
                    "b"));  // line separator
  CHECK_FALSE(
      is_plain_text("a\xE2\x80\xA9"
                    "b"));  // paragraph separator
}

TEST_CASE("a character that turns the direction of text is not plain") {
  for (const char* turn : {"\u061C", "\u200E", "\u200F", "\u202A", "\u202E", "\u2066", "\u2069"})
    CHECK(to_plain_text(std::string("w1") + turn + "x", 100) == "w1?x");
  for (const char* beside : {"\u200D", "\u2010", "\u2027", "\u202F", "\u2065", "\u206A"})
    CHECK(is_plain_text(beside));
}

TEST_CASE("broken UTF-8 is not plain") {
  CHECK_FALSE(is_plain_text("\x80"));              // continuation without a lead
  CHECK_FALSE(is_plain_text("\xC3"));              // lead without its continuation
  CHECK_FALSE(is_plain_text("\xC0\xAF"));          // overlong
  CHECK_FALSE(is_plain_text("\xED\xA0\x80"));      // surrogate
  CHECK_FALSE(is_plain_text("\xF4\x90\x80\x80"));  // above U+10FFFF
  CHECK_FALSE(is_plain_text("\xFF"));
}

TEST_CASE("mended text is plain, keeps what was good and fits its bound") {
  CHECK(to_plain_text("good \xC3\xA4", 100) == "good \xC3\xA4");
  CHECK(to_plain_text("one\ntwo\x1B[31m", 100) == "one?two?[31m");
  CHECK(to_plain_text("a\xFF"
                      "b",
                      100) == "a?b");
  CHECK(to_plain_text("abc", 2) == "ab");
  CHECK(to_plain_text("a\xC3\xA4", 2) == "a");  // never half a character
  CHECK(to_plain_text("", 0).empty());
}

}  // namespace
}  // namespace dpwa::wire
