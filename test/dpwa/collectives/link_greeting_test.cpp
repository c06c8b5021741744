#include "dpwa/collectives/link_greeting.h"

#include <doctest/doctest.h>

#include <span>
#include <string>

#include "dpwa/security/key_file.h"

namespace dpwa::collectives {
namespace {

LinkGreeting some_greeting() {
  LinkGreeting greeting;
  greeting.kind = LinkKind::news;
  greeting.caller = 3;
  greeting.called = 1;
  greeting.size = 4;
  greeting.group = 0x0102030405060708;
  greeting.token = new_key();
  return greeting;
}

TEST_CASE("an address has a text that gives it back") {
  const MemberAddress address{"10.0.0.1", 4711, new_key()};
  const auto read = MemberAddress::parse(address.text());
  REQUIRE(read);
  CHECK(read->host == address.host);
  CHECK(read->port == address.port);
  CHECK(read->token == address.token);
}

TEST_CASE("a text that is no address is refused") {
  const std::string token(64, 'a');
  CHECK(MemberAddress::parse("h 1 " + token));
  CHECK_FALSE(MemberAddress::parse(""));
  CHECK_FALSE(MemberAddress::parse("h"));
  CHECK_FALSE(MemberAddress::parse("h 1"));
  CHECK_FALSE(MemberAddress::parse("h 1 "));
  CHECK_FALSE(MemberAddress::parse(" 1 " + token));
  CHECK_FALSE(MemberAddress::parse("h 0 " + token));
  CHECK_FALSE(MemberAddress::parse("h 65536 " + token));
  CHECK_FALSE(MemberAddress::parse("h -1 " + token));
  CHECK_FALSE(MemberAddress::parse("h 1 " + token.substr(1)));
  CHECK_FALSE(MemberAddress::parse("h 1 " + token + "a"));
  CHECK_FALSE(MemberAddress::parse("h 1 g" + token.substr(1)));
  CHECK_FALSE(MemberAddress::parse("h 1 " + token + " more"));
  CHECK_FALSE(MemberAddress::parse("h\n 1 " + token));
  CHECK_FALSE(MemberAddress::parse(std::string(256, 'h') + " 1 " + token));
}

TEST_CASE("a greeting gives back what was put in, and one with other bytes is a stranger's") {
  const LinkGreeting greeting = some_greeting();
  const auto encoded = greeting.encode();
  const auto read = LinkGreeting::decode(encoded);
  REQUIRE(read);
  CHECK(read->kind == greeting.kind);
  CHECK(read->caller == greeting.caller);
  CHECK(read->called == greeting.called);
  CHECK(read->size == greeting.size);
  CHECK(read->group == greeting.group);
  CHECK(read->token == greeting.token);
  for (const std::size_t at : {0UL, 7UL, 8UL, 9UL, 24UL, 31UL}) {
    auto changed = encoded;
    changed[at] ^= std::byte{0x40};
    CAPTURE(at);
    CHECK_FALSE(LinkGreeting::decode(changed));
  }
  const LinkReply reply{new_key()};
  CHECK(LinkReply::decode(reply.encode())->token == reply.token);
  auto changed = reply.encode();
  changed[7] = std::byte{'1'};
  CHECK_FALSE(LinkReply::decode(changed));
}

TEST_CASE("news name a member or nobody") {
  for (const int lost : {-1, 0, 3}) {
    const auto news = LinkNews::decode(LinkNews{LinkNews::Kind::broken, lost}.encode(), 4);
    REQUIRE(news);
    CHECK(news->kind == LinkNews::Kind::broken);
    CHECK(news->lost == lost);
  }
  CHECK_FALSE(LinkNews::decode(LinkNews{LinkNews::Kind::broken, 4}.encode(), 4));
  CHECK_FALSE(LinkNews::decode(LinkNews{LinkNews::Kind::broken, -2}.encode(), 4));
  CHECK_FALSE(LinkNews::decode(LinkNews{LinkNews::Kind::farewell, 1}.encode(), 4));
  CHECK_FALSE(LinkNews::decode(LinkNews{static_cast<LinkNews::Kind>(3), 0}.encode(), 4));
  CHECK_FALSE(LinkNews::decode(LinkNews{static_cast<LinkNews::Kind>(0), 0}.encode(), 4));
}

}  // namespace
}  // namespace dpwa::collectives
