#include "dpwa/rules/membership.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "test/dpwa/rules/membership_fixture.h"

namespace dpwa {

using namespace test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// "x0", "x1" and so on.
std::vector<MemberClaim> invented(std::size_t first, std::size_t count) {
  std::vector<MemberClaim> claims;
  for (std::size_t i = first; i < first + count; ++i)
    claims.push_back(claim("x" + std::to_string(i), 7));
  return claims;
}

}  // namespace

TEST_CASE("a claim of the own name by a later process is no claim on this one") {
  Membership membership = table();
  membership.merge("a", 1, said_by("a", {claim("me", 101, MemberStatus::dead, 3)}), start);
  CHECK(membership.self().refutation == 0);
}

TEST_CASE("a node announces only itself, in the process that shook hands") {
  Membership membership = table({"a"});
  MemberExchange exchange;
  exchange.claims = {claim("x", 1)};
  membership.merge("y", 1, exchange, start);
  membership.merge("x", 2, exchange, start);
  CHECK_FALSE(membership.find("x"));
  CHECK_FALSE(membership.find("y"));
}

TEST_CASE("no member is accepted at the address of the own node or of a seed") {
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

TEST_CASE("a reported member is vouched for once it has answered, until it moves") {
  Membership membership = table({"a"});
  Random random(1);
  const auto vouched_for = [&] {
    return membership.members()[*membership.find("x")].vouched_for();
  };
  CHECK(membership.members()[*membership.find("a")].vouched_for());
  membership.merge("a", 1, said_by("a", {claim("x", 1)}), start);
  membership.heard("x", 1, start);  // it called: who knows from where
  CHECK_FALSE(vouched_for());
  CHECK(membership.to_meet(8, start, random) == std::vector{*membership.find("x")});
  const auto version = membership.version();
  membership.reached("x", 1, start);
  CHECK(vouched_for());
  CHECK(membership.version() > version);
  CHECK(membership.to_meet(8, start, random).empty());
  MemberClaim moved = claim("x", 2);
  moved.port = 1;
  membership.merge("a", 1, said_by("a", {moved}), start + seconds(20));
  CHECK_FALSE(vouched_for());
}

TEST_CASE("of one member's names no more are held than a message has, until they have answered") {
  Membership membership = table({"a", "b"});
  constexpr std::size_t most = Membership::max_unmet_of_one;
  for (std::size_t first = 0; first < 10 * most; first += most)
    membership.merge("a", 1, said_by("a", invented(first, most)), start);
  CHECK(membership.members().size() == 2 + most);
  membership.merge("b", 1, said_by("b", {claim("honest", 7)}), start);
  CHECK(membership.find("honest"));
  // One that has answered counts no longer, and one that was forgotten neither.
  membership.reached("x0", 7, start);
  membership.failed("x1", start);
  membership.tick(start + seconds(20));
  membership.tick(start + seconds(100));
  CHECK_FALSE(membership.find("x1"));
  membership.merge("a", 1, said_by("a", invented(1000, 5)), start + seconds(100));
  CHECK(membership.members().size() == 2 + most + 2);  // "x0" and "honest" beside them
}

TEST_CASE("names that have not answered are told to nobody, and make no tables differ") {
  Membership membership = table({"a", "b"});
  Membership other(claim("a", 1), {claim("me", 0), claim("b", 0)}, {});
  const auto talk = [&] {
    const auto request = membership.request("a", start);
    other.merge("me", 100, request, start);
    const auto answer = other.answer("me", request, start);
    membership.merge_answer("a", 1, answer, start);
    return std::max(request.claims.size(), answer.claims.size());
  };
  for (int i = 0; i < 40; ++i) talk();
  REQUIRE(talk() == 1);
  const auto digest = membership.digest();
  membership.heard("b", 1, start);
  for (int i = 0; i < 40; ++i) talk();
  REQUIRE_FALSE(membership.exchange_is_due("a", start));
  const std::size_t running = membership.running();
  membership.merge("b", 1, said_by("b", invented(0, 90)), start);
  CHECK(membership.digest() != digest);  // of "b", which has spoken
  CHECK(membership.running() == running);
  CHECK_FALSE(membership.exchange_is_due("a", start));
  CHECK(talk() == 1);
  // One of them answers: all hear of it.
  membership.reached("x7", 7, start);
  CHECK(membership.exchange_is_due("a", start));
  CHECK(tells_of(membership.request("a", start), claim("x7", 7)));
  CHECK(membership.running() == running + 1);
}

TEST_CASE("one that only others tell of is suspect after one try") {
  Membership membership = table({"a"});
  membership.merge("a", 1, said_by("a", {claim("x", 1)}), start);
  membership.failed("x", start);
  CHECK(held(membership, "x").status == MemberStatus::suspect);
}

TEST_CASE("invented names are asked ever more seldom, and are forgotten soon after") {
  std::vector<std::string> liars{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  Membership membership = table(liars);
  constexpr std::size_t each = Membership::max_unmet_of_one;
  const std::size_t names = liars.size() * each;
  for (std::size_t liar = 0; liar < liars.size(); ++liar)
    membership.merge(liars[liar], 1, said_by(liars[liar], invented(liar * each, each)), start);
  REQUIRE(membership.members().size() == liars.size() + names);
  // The liars are silent from here on.
  Random random(1);
  std::map<PeerId, int> asked;
  TimePoint now = start;
  const auto live_for = [&](Duration time) {
    std::size_t dials = 0;
    for (const TimePoint until = now + time; now < until; now += milliseconds(500)) {
      membership.heard("a", 1, now);
      membership.tick(now);
      std::set<PeerId> places;
      for (int draw = 0; draw < 4; ++draw) {
        if (const auto place = membership.to_probe(random)) places.insert(*place);
      }
      const auto met = membership.to_meet(8, now, random);
      CHECK(met.size() <= 9);
      places.insert(met.begin(), met.end());
      for (const PeerId place : places) {
        ++asked[place];
        membership.failed(membership.members()[place].claim.name, now);
      }
      dials += places.size();
    }
    return dials;
  };
  live_for(seconds(63));  // each of them once, at the most that are dialled at a time
  CHECK(asked.size() == names);
  CHECK(live_for(seconds(20)) <= 40);  // where each goes on being asked in vain: 160
  live_for(seconds(80));
  for (const auto& [place, times] : asked) CHECK(times <= 7);
  CHECK(live_for(seconds(60)) == 0);
  CHECK(membership.find("a"));
  for (std::size_t i = 0; i < names; ++i) CHECK_FALSE(membership.find("x" + std::to_string(i)));
}

TEST_CASE("one that was not there when it was first told of is met once its pause is over") {
  Membership membership = table({"a"});
  Random random(1);
  membership.merge("a", 1, said_by("a", {claim("x", 1)}), start);
  const auto x = std::vector{*membership.find("x")};
  TimePoint now = start;
  for (const auto pause : {2, 4, 8, 16}) {
    CHECK(membership.to_meet(8, now, random) == x);
    membership.failed("x", now);
    CHECK(membership.to_meet(8, now + seconds(pause) - milliseconds(1), random).empty());
    now += seconds(pause);
    membership.tick(now);
  }
  CHECK(status_of(membership, "x") == MemberStatus::dead);
  CHECK(membership.to_meet(8, now, random) == x);
  membership.reached("x", 1, now);
  CHECK(membership.members()[x.front()].vouched_for());
  CHECK(status_of(membership, "x") == MemberStatus::alive);
  // From now on it is remembered as any that joined.
  for (int i = 0; i < 12; ++i) membership.failed("x", now);
  membership.tick(now + std::chrono::minutes(10));
  CHECK(membership.find("x"));
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

TEST_CASE("a refutation far ahead of what is known is not believed from others, in steps neither") {
  Membership membership = table();
  constexpr auto jump = Membership::max_refutation_jump;
  membership.heard("a", 1, start);
  const auto hear = [&](std::uint32_t refutation, Duration later) {
    const auto far = claim("a", 1, MemberStatus::left, refutation);
    membership.merge("b", 1, said_by("b", {far}), start + later);
    return held(membership, "a").refutation;
  };
  CHECK(hear(jump + 1, seconds(0)) == 0);
  CHECK(hear(jump, seconds(0)) == jump);
  CHECK(hear(2 * jump, seconds(0)) == jump);
  CHECK(hear(jump + 3, seconds(2)) == jump);
  CHECK(hear(jump + 3, seconds(3)) == jump + 3);
}

TEST_CASE("a false claim about a process ends with the word of that process") {
  Membership membership = table();
  const auto lie = claim("x", 1, MemberStatus::dead, 1U << 20);
  membership.merge("b", 1, said_by("b", {claim("x", 1, MemberStatus::alive, 1U << 20), lie}),
                   start);
  CHECK(held(membership, "x") == lie);
  membership.merge("x", 1, said_by("x"), start + seconds(1));
  CHECK(held(membership, "x") == claim("x", 1));
  membership.merge("b", 1, said_by("b", {lie}), start + seconds(2));
  CHECK(held(membership, "x") == claim("x", 1));
}

TEST_CASE("a process refutes what is far ahead of it in steps") {
  Membership membership = table();
  constexpr auto step = Membership::max_refutation_jump + 1;
  for (unsigned told = 0; told < 3; ++told) {
    const auto lie = claim("me", 100, MemberStatus::dead, 2 * step);
    membership.merge("b", 1, said_by("b", {lie}), start + seconds(told));
    CHECK(membership.self().refutation == std::min((told + 1) * step, 2 * step + 1));
  }
}

TEST_CASE("hearsay does not move one that has told itself where it is, or has answered there") {
  for (const bool has_told : {true, false}) {
    CAPTURE(has_told);
    Membership membership = table({"a"});
    membership.merge("a", 1, said_by("a", {claim("x", 1)}), start);
    if (has_told) membership.merge("x", 1, said_by("x"), start);
    if (!has_told) membership.reached("x", 1, start);
    MemberClaim lie = claim("x", 1, MemberStatus::alive, 1);
    lie.port = 1;
    membership.merge("a", 1, said_by("a", {lie}), start + seconds(20));
    CHECK(held(membership, "x") == claim("x", 1, MemberStatus::alive, 1));
  }
}

TEST_CASE("one that was first heard of at a wrong address is found once it speaks itself") {
  Membership membership = table({"a"});
  MemberClaim lie = claim("x", 1, MemberStatus::alive, 5);
  lie.port = 1;
  membership.merge("a", 1, said_by("a", {lie}), start);
  membership.merge("x", 1, said_by("x"), start + seconds(1));
  CHECK(held(membership, "x").port == claim("x", 1).port);
}

TEST_CASE("a process moves by its own word once it answers no more where it was") {
  Membership membership = table({"a"});
  membership.merge("x", 1, said_by("x"), start);
  membership.reached("x", 1, start);
  MemberExchange word = said_by("x");
  word.claims[0].port = 1;
  membership.merge("x", 1, word, start + seconds(1));
  CHECK(held(membership, "x").port == claim("x", 1).port);
  membership.failed("x", start + seconds(2));
  membership.heard("x", 1, start + seconds(3));
  membership.merge("x", 1, word, start + seconds(3));
  CHECK(held(membership, "x").port == 1);
  CHECK_FALSE(membership.members()[*membership.find("x")].vouched_for());
}

TEST_CASE("no member is moved to the address of a seed") {
  Membership membership = table({"a"});
  membership.merge("a", 1, said_by("a", {claim("x", 1)}), start);
  MemberClaim lie = claim("x", 1, MemberStatus::alive, 1);
  lie.port = claim("a", 1).port;
  membership.merge("a", 1, said_by("a", {lie}), start);
  CHECK(held(membership, "x") == claim("x", 1));
}

TEST_CASE("a liar that floods names only fills the table, and keeps no node out") {
  MembershipOptions options;
  options.max_members = 60;
  Membership membership = table({"a", "b"}, options);
  membership.merge("honest", 1, said_by("honest"), start);
  for (int message = 0; message < 50; ++message) {
    std::vector<MemberClaim> claims;
    for (int i = 0; i < 90; ++i) claims.push_back(claim("x" + std::to_string(message * 90 + i), 7));
    membership.merge("b", 1, said_by("b", std::move(claims)), start + seconds(message));
    CHECK(membership.members().size() <= 60);
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
  CHECK(membership.members().size() == 60);
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

}  // namespace dpwa
