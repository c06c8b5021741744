#include "dpwa/rules/membership.h"

#include <doctest/doctest.h>

#include "test/dpwa/rules/membership_fixture.h"

namespace dpwa {

using namespace test;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("listed members come first, in their order, before anything was heard") {
  const Membership membership = table({"b", "a", "c"});
  CHECK(membership.find("b") == PeerId{0});
  CHECK(membership.find("a") == PeerId{1});
  CHECK(membership.find("c") == PeerId{2});
  CHECK_FALSE(membership.find("me"));
  CHECK(status_of(membership, "a") == MemberStatus::alive);
}

TEST_CASE("a node that was never heard of is never reported") {
  Membership membership = table();
  for (int i = 0; i < 5; ++i) membership.failed("a", start);
  membership.tick(start + seconds(10));
  CHECK(status_of(membership, "a") == MemberStatus::dead);
  const auto request = membership.request("b", start);
  REQUIRE(request.claims.size() == 1);
  CHECK(request.claims[0] == claim("me", 100));
}

TEST_CASE("three pulls in a row without an answer make a suspect, and time makes it dead") {
  Membership membership = table();
  membership.heard("a", 1, start);
  membership.failed("a", start + seconds(1));
  membership.failed("a", start + seconds(2));
  membership.heard("a", 1, start + seconds(3));
  membership.failed("a", start + seconds(4));
  membership.failed("a", start + seconds(5));
  CHECK(status_of(membership, "a") == MemberStatus::alive);
  membership.failed("a", start + seconds(6));
  CHECK(status_of(membership, "a") == MemberStatus::suspect);
  membership.tick(start + seconds(6) + milliseconds(4999));
  CHECK(status_of(membership, "a") == MemberStatus::suspect);
  membership.tick(start + seconds(11));
  CHECK(status_of(membership, "a") == MemberStatus::dead);
  CHECK(tells_of(membership.request("b", start), claim("a", 1, MemberStatus::dead)));
}

TEST_CASE(
    "one that is held dead and speaks is alive to this node at once, and told what was said") {
  Membership membership = table();
  membership.merge("b", 1, said_by("b", {claim("a", 1, MemberStatus::dead)}), start);
  REQUIRE(status_of(membership, "a") == MemberStatus::dead);
  membership.heard("a", 1, start + seconds(1));
  CHECK(status_of(membership, "a") == MemberStatus::alive);
  membership.tick(start + seconds(100));
  CHECK(status_of(membership, "a") == MemberStatus::alive);
  MemberExchange called = said_by("a");
  const auto answer = membership.answer("a", called, start + seconds(2));
  CHECK(tells_of(answer, claim("a", 1, MemberStatus::dead)));
  // Once it falls silent, what was said counts again.
  for (int i = 0; i < 3; ++i) membership.failed("a", start + seconds(3));
  CHECK(status_of(membership, "a") == MemberStatus::dead);
}

TEST_CASE("a process refutes that it is gone, and only claims about itself") {
  for (const auto status : {MemberStatus::suspect, MemberStatus::dead, MemberStatus::left}) {
    Membership membership = table();
    membership.merge("a", 1, said_by("a", {claim("me", 100, status, 4)}), start);
    CHECK(membership.self().refutation == 5);
    CHECK(membership.self().status == MemberStatus::alive);
    membership.merge("a", 1, said_by("a", {claim("me", 100, status, 4)}), start);
    membership.merge("a", 1, said_by("a", {claim("me", 99, status, 40)}), start);
    CHECK(membership.self().refutation == 5);
  }
}

TEST_CASE("one that leaves does not refute that, and says so first in every exchange") {
  Membership membership = table();
  membership.leave();
  membership.merge("a", 1, said_by("a", {claim("me", 100, MemberStatus::left)}), start);
  CHECK(membership.self().refutation == 0);
  CHECK(membership.request("a", start).claims[0] == claim("me", 100, MemberStatus::left));
}

TEST_CASE("an open table learns names from others, a closed one does not") {
  for (const bool open : {true, false}) {
    MembershipOptions options;
    options.open = open;
    Membership membership = table({"a"}, options);
    membership.merge("a", 1, said_by("a", {claim("new", 5)}), start);
    membership.merge("newer", 1, said_by("newer"), start);
    CHECK(membership.find("new").has_value() == open);
    CHECK(membership.find("newer").has_value() == open);
    CHECK(membership.admission("other") ==
          (open ? Membership::Admission::may_join : Membership::Admission::closed));
    CHECK(membership.admission("a") == Membership::Admission::known);
  }
}

TEST_CASE("one that moved is dialled at its new address, and a seed stays where the file has it") {
  Membership membership = table({"a"});
  membership.merge("x", 1, said_by("x"), start);
  for (const std::string name : {"x", "a"}) {
    MemberExchange moved;
    moved.claims = {claim(name, 2)};
    moved.claims[0].addresses = {"10.0.0.9"};
    membership.merge(name, 2, moved, start + seconds(1));
    CHECK(held(membership, name).incarnation == 2);
  }
  CHECK(held(membership, "x").addresses == std::vector<std::string>{"10.0.0.9"});
  CHECK(held(membership, "a").addresses == std::vector<std::string>{"10.0.0.1"});
}

TEST_CASE("a restart is known by its higher incarnation and ends every suspicion") {
  Membership membership = table();
  membership.heard("a", 1, start);
  for (int i = 0; i < 3; ++i) membership.failed("a", start);
  membership.tick(start + seconds(20));
  REQUIRE(status_of(membership, "a") == MemberStatus::dead);
  membership.merge("b", 1, said_by("b", {claim("a", 2)}), start + seconds(21));
  CHECK(status_of(membership, "a") == MemberStatus::alive);
  CHECK(held(membership, "a").incarnation == 2);
}

TEST_CASE("a restart under an earlier clock is not undone by those that hold the former process") {
  Membership membership = table();
  membership.heard("b", 7, start);
  membership.heard("b", 3, start + seconds(1));
  membership.merge("a", 1, said_by("a", {claim("b", 7)}), start + seconds(60));
  CHECK(held(membership, "b").incarnation == 3);
  membership.merge("a", 1, said_by("a", {claim("b", 8)}), start + seconds(120));
  CHECK(held(membership, "b").incarnation == 8);
}

TEST_CASE("a peer that was suspected wrongly takes twice as many failures the next time") {
  Membership membership = table();
  membership.heard("a", 1, start);
  std::uint32_t refutation = 0;
  for (const int needed : {3, 6, 12, 24, 48, 48}) {
    for (int i = 0; i < needed - 1; ++i) membership.failed("a", start);
    CHECK(status_of(membership, "a") == MemberStatus::alive);
    membership.failed("a", start);
    CHECK(status_of(membership, "a") == MemberStatus::suspect);
    membership.merge("b", 1, said_by("b", {claim("a", 1, MemberStatus::alive, ++refutation)}),
                     start);
    CHECK(status_of(membership, "a") == MemberStatus::alive);
  }
}

TEST_CASE("the dead that joined are forgotten in time, and stay so, and listed ones never are") {
  Membership membership = table({"a"});
  membership.merge("x", 1, said_by("x"), start);
  for (const std::string name : {"a", "x"}) {
    membership.heard(name, 1, start);
    for (int i = 0; i < 3; ++i) membership.failed(name, start + seconds(1));
  }
  membership.tick(start + seconds(10));
  membership.tick(start + std::chrono::hours(2));
  CHECK(status_of(membership, "a") == MemberStatus::dead);
  CHECK_FALSE(membership.find("x"));
  membership.merge("a", 1, said_by("a", {claim("x", 1, MemberStatus::dead)}), start);
  CHECK_FALSE(membership.find("x"));
  membership.merge("y", 1, said_by("y"), start);
  CHECK(membership.find("y") == PeerId{1});  // the place of x
}

TEST_CASE("one that is named to join by is kept like a seed") {
  Membership membership = table({"a"});
  membership.merge("x", 1, said_by("x"), start);
  membership.keep("x");
  for (int i = 0; i < 3; ++i) membership.failed("x", start);
  membership.tick(start + seconds(10));
  membership.tick(start + std::chrono::hours(9));
  CHECK(status_of(membership, "x") == MemberStatus::dead);
}

TEST_CASE(
    "a node that the file lists is a seed from then on, at that address, and no more once it is "
    "not") {
  for (const bool open : {true, false}) {
    MembershipOptions options;
    options.open = open;
    Membership membership = table({"a"}, options);
    MemberClaim moved = claim("a", 0);
    moved.addresses = {"10.0.0.7"};
    membership.list(moved, start);
    membership.list(claim("x", 0), start);
    CHECK(held(membership, "a").addresses == moved.addresses);
    CHECK(membership.admission("x") == Membership::Admission::known);
    membership.heard("x", 1, start);
    CHECK(status_of(membership, "x") == MemberStatus::alive);
    membership.unlist("x");
    CHECK(membership.find("x").has_value() == open);
  }
}

TEST_CASE("an exchange is due when there is news, for a suspect, and after a while without") {
  Membership membership = table();
  CHECK(membership.exchange_is_due("a", start));
  membership.heard("a", 1, start);
  membership.heard("b", 1, start);
  for (int i = 0; i < 40; ++i) membership.request("b", start);
  membership.request("a", start);
  CHECK_FALSE(membership.exchange_is_due("a", start + milliseconds(999)));
  CHECK(membership.exchange_is_due("a", start + seconds(1)));
  CHECK_FALSE(membership.exchange_is_due("b", start));
  membership.merge("b", 1, said_by("b", {claim("new", 1)}), start);
  CHECK_FALSE(membership.exchange_is_due("a", start));  // it may be invented
  membership.reached("new", 1, start);
  CHECK(membership.exchange_is_due("a", start));
}

TEST_CASE("tables that differ are told in parts, to one who asks for each in turn") {
  Membership full = table({"a"});
  std::vector<MemberClaim> claims;
  for (int i = 0; i < 300; ++i) claims.push_back(claim("x" + std::to_string(i), 7));
  for (std::size_t i = 0; i < claims.size(); i += 50) {
    full.merge(
        "a", 1,
        said_by("a", {claims.begin() + std::ptrdiff_t(i), claims.begin() + std::ptrdiff_t(i) + 50}),
        start);
    for (std::size_t k = i; k < i + 50; ++k) full.reached(claims[k].name, 7, start);
  }
  Membership joiner(claim("j", 9), {}, {});
  Random random(1);
  int exchanges = 0;
  for (; joiner.digest() != full.digest() && exchanges < 20; ++exchanges) {
    const auto request = joiner.request("me", start);
    full.merge("j", 9, request, start);
    full.reached("j", 9, start);
    joiner.merge_answer("me", 100, full.answer("j", request, start), start);
    for (const PeerId place : joiner.to_meet(1000, start, random)) {
      const MemberClaim met = joiner.members()[place].claim;
      joiner.reached(met.name, met.incarnation, start);
    }
  }
  CHECK(exchanges <= 8);
  CHECK(joiner.members().size() == 302);  // the 300, "a" and "me"
  CHECK(joiner.digest() == full.digest());
}

TEST_CASE(
    "whom to look after: one that has just failed, else one of the dead, never one that left") {
  Random random(1);
  Membership membership = table({"a", "b"});
  CHECK_FALSE(membership.to_probe(random));
  membership.heard("a", 1, start);
  for (int i = 0; i < 3; ++i) membership.failed("a", start);
  CHECK(membership.to_probe(random) == PeerId{0});
  membership.tick(start + seconds(10));
  CHECK(membership.to_probe(random) == PeerId{0});
  membership.failed("b", start);
  CHECK(membership.to_probe(random) == PeerId{1});
  membership.heard("b", 1, start);
  membership.heard("a", 1, start + seconds(20));
  CHECK_FALSE(membership.to_probe(random));
  MemberExchange farewell = said_by("x");
  membership.merge("x", 1, said_by("x"), start);
  farewell.claims[0].status = MemberStatus::left;
  membership.merge("x", 1, farewell, start);
  CHECK_FALSE(membership.to_probe(random));
}

}  // namespace dpwa
