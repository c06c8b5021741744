#include "dpwa/net/same_host/offer.h"

#include <doctest/doctest.h>

namespace dpwa::same_host {

TEST_CASE("an offer survives the way through its text") {
  const Offer offer{boot_id(), unique_socket_name()};
  CHECK_FALSE(offer.boot_id.empty());
  const auto parsed = parse_offer(to_text(offer));
  REQUIRE(parsed);
  CHECK(*parsed == offer);
}

TEST_CASE("socket names are never the same") {
  CHECK(unique_socket_name() != unique_socket_name());
}

TEST_CASE("a text that names no socket of this namespace is no offer") {
  CHECK(parse_offer("0f/dpwa-1-2"));
  for (const char* text : {"", "/", "0f/", "/dpwa", "0f", "0f/../etc", "0f/a/b", "0f/A", "0F/a",
                           "0f/a b", "0f/a\xC3\xA4"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_offer(text));
  }
  CHECK(parse_offer("0f/" + std::string(107, 'a')));
  CHECK_FALSE(parse_offer("0f/" + std::string(108, 'a')));
  CHECK_FALSE(parse_offer(std::string(65, 'a') + "/a"));
}

}  // namespace dpwa::same_host
