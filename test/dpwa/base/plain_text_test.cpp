#include "dpwa/base/plain_text.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <string>

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
  for (const char* beside : {"\u200A", "\u2010", "\u2027", "\u202F", "\u205F", "\u2070"})
    CHECK(is_plain_text(beside));
}

TEST_CASE("an invisible character is not plain, and its neighbours are") {
  for (const char* hidden :
       {"\u00AD",     "\u034F",     "\u115F",     "\u1160",     "\u17B4",    "\u180E",
        "\u200B",     "\u200C",     "\u200D",     "\u2060",     "\u2065",    "\u206A",
        "\u3164",     "\uFE0F",     "\uFEFF",     "\uFFA0",     "\uFFF9",    "\uFFFB",
        "\U0001BCA0", "\U0001D173", "\U000E0001", "\U000E0041", "\U000E01EF"}) {
    CAPTURE(hidden);
    CHECK_FALSE(is_plain_text(std::string("w") + hidden + "1"));
  }
  for (const char* beside :
       {"\u00A0", "\u00AC", "\u00AE", "\u034E",     "\u0350",     "\u1161",    "\u17B3",
        "\u180A", "\u1810", "\u3163", "\u3165",     "\uFDFF",     "\uFE10",    "\uFEFE",
        "\uFF9F", "\uFFEF", "\uFFFD", "\U0001D172", "\U000DFFFF", "\U000E1000"}) {
    CAPTURE(beside);
    CHECK(is_plain_text(beside));
  }
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

TEST_CASE("an error of a program is one line, and refused memory is named") {
  CHECK(one_line(std::bad_alloc()) == "out of memory");
  CHECK(one_line(std::bad_array_new_length()) == "out of memory");
  CHECK(one_line(std::runtime_error("wrong\u202E\nframe #0")) == "wrong\\xe2\\x80\\xae");
}

TEST_CASE("a quoted text keeps what is plain and shows every other byte") {
  CHECK(one_line("").empty());
  CHECK(one_line("layer 1 \xC3\xA4 \xE8\x8A\x82") == "layer 1 \xC3\xA4 \xE8\x8A\x82");
  CHECK(one_line("a\nb\t\x7F") == "a\\x0ab\\x09\\x7f");
  CHECK(one_line("\u009B31m") == "\\xc2\\x9b31m");
  CHECK(one_line("w\u202E1") == "w\\xe2\\x80\\xae1");
  CHECK(one_line("w\u200B1") == "w\\xe2\\x80\\x8b1");
  CHECK(one_line("\xFF\xC3") == "\\xff\\xc3");
  CHECK(one_line(std::string_view("\0", 1)) == "\\x00");
}

}  // namespace
}  // namespace dpwa::wire
