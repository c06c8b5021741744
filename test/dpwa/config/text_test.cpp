#include <doctest/doctest.h>

#include "dpwa/config/text.h"

using namespace dpwa::config;

TEST_CASE("the nearest key is found over typing mistakes") {
  const std::vector<std::string> keys = {"pull_probability", "timeout_ms", "blend", "port"};
  CHECK(nearest_key("pul_probabilty", keys) == "pull_probability");
  CHECK(nearest_key("timeout", keys) == "timeout_ms");
  CHECK(nearest_key("belnd", keys) == "blend");
  CHECK(nearest_key("TIMEOUT-MS", keys) == "timeout_ms");
  CHECK(nearest_key("prot", keys) == "port");
}

TEST_CASE("nothing is suggested when no key is near") {
  CHECK(nearest_key("colour", {"timeout_ms", "blend"}).empty());
  CHECK(nearest_key("", {"timeout_ms", "blend"}).empty());
  CHECK(nearest_key("anything", {}).empty());
  CHECK(suggestion("colour", {"blend"}).empty());
  CHECK(suggestion("blnd", {"blend"}) == " did you mean 'blend'?");
}

using namespace dpwa;
using namespace dpwa::config;
using namespace std::chrono_literals;

TEST_CASE("a bare duration counts milliseconds and a unit overrides it") {
  CHECK(parse_duration_ms("500") == Duration(500ms));
  CHECK(parse_duration_ms("500ms") == Duration(500ms));
  CHECK(parse_duration_ms("2s") == Duration(2s));
  CHECK(parse_duration_ms("2 s") == Duration(2s));
  CHECK(parse_duration_ms("1m") == Duration(1min));
  CHECK(parse_duration_ms("1.5h") == Duration(90min));
  CHECK(parse_duration_ms("250us") == Duration(250us));
  CHECK(parse_duration_ms("0.25") == Duration(250us));
  CHECK(parse_duration_ms("1e3") == Duration(1s));
  CHECK(parse_duration_ms("0") == Duration(0));
}

TEST_CASE("text that is no duration is refused") {
  for (const char* text :
       {"", "abc", "ms", "5 parsecs", "5MS", "1s2", "1,5", "nan", "inf", "nanms", "0x10"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration_ms(text).has_value());
  }
}

TEST_CASE("an absurd duration keeps its sign instead of overflowing") {
  CHECK(*parse_duration_ms("1e300") > Duration(24h));
  CHECK(*parse_duration_ms("-1e300") < Duration(0));
  CHECK(*parse_duration_ms("-1e-300") < Duration(0));
}

TEST_CASE("sizes know powers of 1000 and of 1024") {
  CHECK(parse_size_bytes("4096") == 4096);
  CHECK(parse_size_bytes("512KiB") == 524288);
  CHECK(parse_size_bytes("64MiB") == 67108864);
  CHECK(parse_size_bytes("1MB") == 1000000);
  CHECK(parse_size_bytes("1kb") == 1000);
  CHECK(parse_size_bytes("1.5KiB") == 1536);
  CHECK(parse_size_bytes("2 GiB") == 2147483648);
  CHECK(parse_size_bytes("7B") == 7);
}

TEST_CASE("text that is no size is refused and absurd sizes are out of any range") {
  for (const char* text : {"", "KiB", "1.5", "12XB", "big", "inf"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size_bytes(text).has_value());
  }
  CHECK(parse_size_bytes("-1") == -1);
  CHECK(parse_size_bytes("1e40GiB") == -1);
}

TEST_CASE("numbers are finite and take the whole text") {
  CHECK(parse_number("-0.5") == -0.5);
  for (const char* text : {"", "1x", " 1", "nan", "inf", "-inf", "1e999", ".", "0x1p3"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number(text).has_value());
  }
}

TEST_CASE("milliseconds are written exactly and read back equal") {
  CHECK(milliseconds_text(500ms) == "500");
  CHECK(milliseconds_text(5min) == "300000");
  CHECK(milliseconds_text(250us) == "0.25");
  for (const Duration duration : {Duration(1), Duration(123456789), Duration(24h) - Duration(1)}) {
    CHECK(parse_duration_ms(milliseconds_text(duration)) == duration);
  }
}

TEST_CASE("numbers are written as short as reads back equal, whole ones with all digits") {
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(1e5) == "100000");
  CHECK(number_text(-3) == "-3");
  CHECK(number_text(1e-300) == "1e-300");
  CHECK(number_text(1e20) == "1e+20");
}
