#include "bench/quantity.h"

#include <doctest/doctest.h>

using namespace dpwa::bench;

TEST_CASE("sizes have decimal and binary units") {
  CHECK(parse_size("200") == 200);
  CHECK(parse_size("10KB") == 10'000);
  CHECK(parse_size("100MB") == 100'000'000);
  CHECK(parse_size("64MiB") == 64u << 20);
  CHECK(parse_size("1.5GB") == 1'500'000'000);
}

TEST_CASE("a size that is nothing, negative, odd or without a number is none") {
  for (const char* text : {"", "0", "-1MB", "MB", "3x", "1.5", "100 MB more", "1e99"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size(text));
  }
}

TEST_CASE("counts have decimal units") {
  CHECK(parse_count("500") == 500);
  CHECK(parse_count("100k") == 100'000);
  CHECK(parse_count("10M") == 10'000'000);
  CHECK(parse_count("1.5G") == 1'500'000'000);
}

TEST_CASE("a count that is nothing, negative or no whole number is none") {
  for (const char* text : {"", "0", "-1", "k", "0.5", "1.0001k", "10MB", "1e99"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_count(text));
  }
}

TEST_CASE("sizes and times are told in the unit that suits them") {
  CHECK(size_text(200) == "200 B");
  CHECK(size_text(10'000) == "10 KB");
  CHECK(size_text(100'000'000) == "100 MB");
  CHECK(size_text(1'500'000'000) == "1.5 GB");
  CHECK(time_text(21.86) == "21.86 us");
  CHECK(time_text(19700) == "19.7 ms");
  CHECK(time_text(2e6) == "2 s");
}
