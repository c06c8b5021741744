#include "dpwa/core/membership.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace dpwa {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint start{std::chrono::hours(10)};

MemberClaim claim(const std::string& name, std::uint64_t incarnation,
                  MemberStatus status = MemberStatus::alive, std::uint32_t refutation = 0) {
  const auto port = static_cast<std::uint16_t>(1 + std::hash<std::string>()(name) % 65535);
  return {name, {"10.0.0.1"}, port, incarnation, refutation, status};
}

// The own node "me" in process 100, with seeds that were never heard of.
Membership table(const std::vector<std::string>& seeds = {"a", "b"},
                 MembershipOptions options = {}) {
  std::vector<MemberClaim> known;
  for (const auto& seed : seeds) known.push_back(claim(seed, 0));
  return Membership(claim("me", 100), known, options);
}

// What `from` (process 1) says beside its own claim.
MemberExchange said_by(const std::string& from, std::vector<MemberClaim> claims = {}) {
  MemberExchange exchange;
  exchange.claims = std::move(claims);
  exchange.claims.insert(exchange.claims.begin(), claim(from, 1));
  return exchange;
}

MemberStatus status_of(const Membership& membership, const std::string& name) {
  const auto place = membership.find(name);
  REQUIRE(place);
  return membership.members()[*place].status();
}

const MemberClaim& held(const Membership& membership, const std::string& name) {
  return membership.members()[membership.find(name).value()].claim;
}

bool tells_of(const MemberExchange& exchange, const MemberClaim& claim) {
  return std::ranges::find(exchange.claims, claim) != exchange.claims.end();
}

}  // namespace

TEST_CASE("seeds come first, in their order, before anything was heard") {
  const Membership membership = table({"b", "a", "c"});
  CHECK(membership.find("b") == PeerId{0});
  CHECK(membership.find("a") == PeerId{1});
  CHECK(membership.find("c") == PeerId{2});
  CHECK_FALSE(membership.find("me"));
  CHECK(status_of(membership, "a") == MemberStatus::alive);
}

TEST_CASE("who is not heard of is never told of") {
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

TEST_CASE("who is said to be gone refutes it, and only what is said of this very process") {
  for (const auto status : {MemberStatus::suspect, MemberStatus::dead, MemberStatus::left}) {
    Membership membership = table();
    membership.merge("a", 1, said_by("a", {claim("me", 100, status, 4)}), start);
    CHECK(membership.self().refutation == 5);
    CHECK(membership.self().status == MemberStatus::alive);
    membership.merge("a", 1, said_by("a", {claim("me", 100, status, 4)}), start);
    membership.merge("a", 1, said_by("a", {claim("me", 99, status, 40)}), start);
    CHECK(membership.self().refutation == 5);
    CHECK(membership.contested_by() == 0);
  }
}

TEST_CASE("one that leaves does not refute that, and says so first in every exchange") {
  Membership membership = table();
  membership.leave();
  membership.merge("a", 1, said_by("a", {claim("me", 100, MemberStatus::left)}), start);
  CHECK(membership.self().refutation == 0);
  CHECK(membership.request("a", start).claims[0] == claim("me", 100, MemberStatus::left));
}

TEST_CASE("a claim of the own name by a later process is no claim on this one") {
  Membership membership = table();
  membership.merge("a", 1, said_by("a", {claim("me", 101, MemberStatus::dead, 3)}), start);
  CHECK(membership.contested_by() == 101);
  CHECK(membership.self().refutation == 0);
}

TEST_CASE("a table that is open learns names from others, one that is closed from nobody") {
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

TEST_CASE("nobody announces another than itself, in the process that shook hands") {
  Membership membership = table({"a"});
  MemberExchange exchange;
  exchange.claims = {claim("x", 1)};
  membership.merge("y", 1, exchange, start);
  membership.merge("x", 2, exchange, start);
  CHECK_FALSE(membership.find("x"));
  CHECK_FALSE(membership.find("y"));
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

TEST_CASE("nobody is taken in at the address of the own node or of a seed") {
  Membership membership = table({"a"});
  for (const std::string at : {"a", "me"}) {
    MemberClaim ghost = claim("ghost", 1);
    ghost.port = claim(at, 1).port;
    membership.merge("a", 1, said_by("a", {ghost}), start);
    MemberExchange by_itself;
    by_itself.claims = {ghost};
    membership.merge("ghost", 1, by_itself, start);
    CHECK_FALSE(membership.find("ghost"));
  }
  membership.merge("a", 1, said_by("a", {claim("ghost", 1)}), start);
  CHECK(membership.find("ghost"));
}

TEST_CASE("who others tell of is vouched for once it has answered, until it moves") {
  Membership membership = table({"a"});
  Random random(1);
  const auto vouched_for = [&] {
    return membership.members()[*membership.find("x")].vouched_for();
  };
  CHECK(membership.members()[*membership.find("a")].vouched_for());
  membership.merge("a", 1, said_by("a", {claim("x", 1)}), start);
  membership.heard("x", 1, start);  // it called: who knows from where
  CHECK_FALSE(vouched_for());
  CHECK(membership.to_meet(8, random) == std::vector{*membership.find("x")});
  const auto version = membership.version();
  membership.reached("x", 1, start);
  CHECK(vouched_for());
  CHECK(membership.version() > version);
  CHECK(membership.to_meet(8, random).empty());
  MemberClaim moved = claim("x", 2);
  moved.port = 1;
  membership.merge("a", 1, said_by("a", {moved}), start + seconds(20));
  CHECK_FALSE(vouched_for());
}

TEST_CASE("one that only others tell of is suspect after one try") {
  Membership membership = table({"a"});
  membership.merge("a", 1, said_by("a", {claim("x", 1)}), start);
  membership.failed("x", start);
  CHECK(held(membership, "x").status == MemberStatus::suspect);
}

TEST_CASE("lies about the own node do not use up its refutations") {
  Membership membership = table({"a"});
  std::uint32_t before = 0;
  TimePoint now = start;
  for (int told = 0; told < 1000; ++told, now += milliseconds(1)) {
    const std::uint32_t refutation = membership.self().refutation + Membership::max_refutation_jump;
    const MemberClaim lie = claim("me", 100, MemberStatus::suspect, refutation);
    membership.merge("a", 1, said_by("a", {lie, lie}), now);
    CHECK(membership.self().refutation - before <= Membership::max_refutation_jump + 1);
    before = membership.self().refutation;
  }
  CHECK(before == 10 * (Membership::max_refutation_jump + 1));
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

TEST_CASE("hearsay of another process does not replace one that has just spoken") {
  Membership membership = table();
  membership.heard("a", 5, start);
  const auto hearsay = said_by("b", {claim("a", 6)});
  membership.merge("b", 1, hearsay, start + seconds(1));
  CHECK(held(membership, "a").incarnation == 5);
  membership.merge("b", 1, hearsay, start + seconds(10));
  CHECK(held(membership, "a").incarnation == 6);
}

TEST_CASE("hearsay that one who has just spoken is dead makes it a suspect, and dead in time") {
  Membership membership = table();
  membership.heard("a", 5, start);
  const auto hearsay = said_by("b", {claim("a", 5, MemberStatus::dead)});
  membership.merge("b", 1, hearsay, start + seconds(1));
  CHECK(status_of(membership, "a") == MemberStatus::suspect);
  membership.tick(start + seconds(6));
  CHECK(status_of(membership, "a") == MemberStatus::dead);
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

TEST_CASE("a refutation far ahead of what is known is not believed from others") {
  Membership membership = table();
  membership.heard("a", 1, start);
  const auto far = claim("a", 1, MemberStatus::left, Membership::max_refutation_jump + 1);
  membership.merge("b", 1, said_by("b", {far}), start);
  CHECK(held(membership, "a").refutation == 0);
  membership.merge("b", 1, said_by("b", {claim("me", 100, MemberStatus::dead, 1u << 30)}), start);
  CHECK(membership.self().refutation == 0);
}

TEST_CASE("the dead that joined are forgotten in time, and stay so, and seeds never are") {
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

TEST_CASE("a liar that floods names fills the table and no more, and keeps nobody out") {
  MembershipOptions options;
  options.max_members = 100;
  Membership membership = table({"a", "b"}, options);
  membership.merge("honest", 1, said_by("honest"), start);
  for (int message = 0; message < 50; ++message) {
    std::vector<MemberClaim> claims;
    for (int i = 0; i < 90; ++i) claims.push_back(claim("x" + std::to_string(message * 90 + i), 7));
    membership.merge("b", 1, said_by("b", std::move(claims)), start + seconds(message));
    CHECK(membership.members().size() <= 100);
    const auto request = membership.request("a", start + seconds(message));
    CHECK(request.claims.size() <= Membership::max_claims);
  }
  CHECK(membership.find("honest"));
  CHECK(membership.find("a"));
  // One that comes by itself takes the place of one that was only spoken of.
  CHECK(membership.admission("late") == Membership::Admission::may_join);
  membership.merge("late", 1, said_by("late"), start + seconds(60));
  CHECK(membership.find("late"));
  CHECK(membership.find("honest"));
  CHECK(membership.members().size() == 100);
}

TEST_CASE("a table full of those that came by themselves admits no more until one is gone") {
  MembershipOptions options;
  options.max_members = 3;
  Membership membership = table({"a"}, options);
  membership.merge("x", 1, said_by("x"), start);
  membership.merge("y", 1, said_by("y"), start);
  CHECK(membership.admission("z") == Membership::Admission::full);
  membership.merge("z", 1, said_by("z"), start);
  CHECK_FALSE(membership.find("z"));
  MemberExchange farewell = said_by("x");
  farewell.claims[0].status = MemberStatus::left;
  membership.merge("x", 1, farewell, start);
  CHECK(status_of(membership, "x") == MemberStatus::left);
  membership.merge("z", 1, said_by("z"), start);
  CHECK(membership.find("z"));
  CHECK_FALSE(membership.find("x"));
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
  }
  Membership joiner(claim("j", 9), {}, {});
  int exchanges = 0;
  for (bool more = true; more && exchanges < 20; ++exchanges) {
    const auto request = joiner.request("me", start);
    full.merge("j", 9, request, start);
    more = joiner.merge_answer("me", 100, full.answer("j", request, start), start);
  }
  CHECK(exchanges <= 6);
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
