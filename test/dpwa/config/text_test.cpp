#include "dpwa/config/text.h"

#include <doctest/doctest.h>

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
