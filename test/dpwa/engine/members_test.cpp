#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "dpwa/engine/pull_engine.h"
#include "dpwa/rules/membership.h"
#include "test/dpwa/engine/pull_driver.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{1h};

MemberClaim claim(const std::string& name, std::uint64_t incarnation = 0) {
  return {name, {"10.0.0." + name.substr(1)}, 7000, incarnation, 0, MemberStatus::alive};
}

// w0, whose file names w1, w2, ...
Membership table_of(int seeds) {
  std::vector<MemberClaim> claims;
  for (int i = 1; i <= seeds; ++i) claims.push_back(claim("w" + std::to_string(i)));
  return {claim("w0", 1), claims, {}};
}

// The names of those to ask besides the pulls.
std::vector<std::string> asked(Membership& table, TimePoint now) {
  Random random(1);
  table.tick(now);
  std::vector<std::string> names;
  for (const MemberClaim& claim : table.to_ask(now, random)) names.push_back(claim.name);
  return names;
}

}  // namespace

TEST_CASE("the changes since a version of the table are the changed places") {
  Membership table = table_of(5);
  CHECK(table.changed_since(0) == std::vector<PeerId>{0, 1, 2, 3, 4});
  std::uint64_t version = table.version();
  CHECK(table.changed_since(version).empty());

  table.reached("w4", 7, start);
  table.reached("w2", 7, start);
  CHECK(table.changed_since(version) == std::vector<PeerId>{1, 3});
  version = table.version();
  table.unlist("w3");
  CHECK(table.changed_since(version) == std::vector<PeerId>{2});
  version = table.version();
  table.keep("w3");
  CHECK(table.changed_since(version) == std::vector<PeerId>{2});
  version = table.version();
  for (int i = 0; i < 3; ++i) table.failed("w1", start + 1s);
  CHECK(table.members()[0].status() == MemberStatus::suspect);
  CHECK(table.changed_since(version) == std::vector<PeerId>{0});
  version = table.version();
  table.merge("w9", 3, {.claims = {claim("w9", 3)}}, start);
  CHECK(table.changed_since(version) == std::vector<PeerId>{5});
}

TEST_CASE("after more changes than are remembered every place has changed") {
  Membership table = table_of(3);
  const std::uint64_t version = table.version();
  for (std::size_t i = 0; i < Membership::max_changes; ++i) table.keep("w2");
  CHECK(table.changed_since(version) == std::vector<PeerId>{1});
  table.keep("w2");
  CHECK(table.changed_since(version) == std::vector<PeerId>{0, 1, 2});
  CHECK(table.changed_since(version + 1) == std::vector<PeerId>{1});
}

TEST_CASE("one member is asked outside of the pulls after two seconds without a pull") {
  Membership node = table_of(3);
  node.request("w1", start);
  CHECK(asked(node, start + 1s).empty());
  CHECK(asked(node, start + 3s).size() == 1);
  node.request("w1", start + 3s);
  CHECK(asked(node, start + 4s).empty());
}

TEST_CASE("a failed member and an unverified one are asked outside of the pulls") {
  Membership node = table_of(3);
  node.request("w1", start);
  node.failed("w2", start);
  CHECK(asked(node, start + 1s) == std::vector<std::string>{"w2"});
  node.reached("w2", 5, start + 1s);
  node.request("w1", start + 1s);
  // Told of by another.
  node.merge("w1", 4, {.claims = {claim("w1", 4), claim("w8", 3)}}, start + 1s);
  CHECK(asked(node, start + 2s) == std::vector<std::string>{"w8"});
}

TEST_CASE("only some running members are told something at once") {
  Membership node = table_of(6);
  Random random(1);
  CHECK(node.some_running(3, random).empty());  // nobody has been heard of yet
  for (int i = 1; i <= 5; ++i) node.reached("w" + std::to_string(i), 4, start);
  CHECK(node.some_running(3, random).size() == 3);
  CHECK(node.some_running(9, random).size() == 5);
}

namespace {

using test::of_peer;
using test::progress;
using Driver = test::PullDriver;

Member member(const std::string& name, MemberStatus status = MemberStatus::alive,
              bool reached = true) {
  Member member;
  member.claim.name = name;
  member.claim.status = status;
  member.reached = reached;
  return member;
}

}  // namespace

TEST_CASE("most of the cluster file's nodes that run must refuse the name before a node ends") {
  Driver driver({"w1", "w2", "w3"});
  const std::vector<PeerId> seeds{0, 1, 2};
  const auto refused_by = [&driver](PeerId peer) {
    driver.engine.begin(of_peer(peer));
    REQUIRE(driver.ask());
    Answer answer;
    answer.failure = PeerFailure::rejected;
    answer.refuses_name = true;
    driver.engine.settle(answer, false, false, driver.now);
    CHECK_FALSE(driver.ask());
  };
  refused_by(0);
  CHECK_FALSE(driver.engine.evicted_by(seeds));
  CHECK(driver.engine.evicted_by({0}));
  CHECK_FALSE(driver.engine.evicted_by({0, 1}));
  refused_by(1);
  CHECK(driver.engine.evicted_by(seeds));
  driver.round(of_peer(0), progress(1));  // it has answered since
  CHECK_FALSE(driver.engine.evicted_by(seeds));
}

TEST_CASE(
    "members that join are asked once they are vouched for, and what is told of them is news") {
  Driver driver({"w1"});
  const auto lines = [&driver] { return driver.lines(LogEntry::Weight::info); };
  CHECK_FALSE(driver.engine.take_up(0, member("w1")));
  CHECK(lines().empty());  // the file names it
  CHECK(driver.engine.take_up(1, member("w2", MemberStatus::alive, /*reached=*/false)));
  CHECK(driver.engine.table().at(1).out);
  CHECK(lines().empty());
  CHECK_FALSE(driver.engine.take_up(1, member("w2")));
  CHECK_FALSE(driver.engine.table().at(1).out);
  CHECK(lines() == std::vector<std::string>{"'w2' joined"});
  CHECK_FALSE(driver.engine.take_up(1, member("w2")));
  CHECK(lines().empty());
  for (int times = 0; times < 2; ++times)
    driver.engine.take_up(1, member("w2", MemberStatus::suspect));
  CHECK(lines() == std::vector<std::string>{"'w2' does not answer"});
  driver.engine.take_up(1, member("w2"));
  CHECK(lines() == std::vector<std::string>{"'w2' is there"});
  driver.engine.take_up(1, member("w2", MemberStatus::suspect));
  CHECK(lines() == std::vector<std::string>{"'w2' does not answer"});
  driver.engine.take_up(1, member("w2", MemberStatus::dead));
  CHECK(lines() ==
        std::vector<std::string>{"'w2' is gone: it is not pulled from until it is back"});
  driver.engine.take_up(1, member("w2"));
  CHECK(lines() == std::vector<std::string>{"'w2' is there"});
}

TEST_CASE("another node in a peer's place inherits nothing of it") {
  Driver driver({"w1"});
  driver.round(of_peer(0), progress(7));
  CHECK(driver.engine.take_up(0, member("w9")));
  CHECK(driver.engine.table().at(0).pulls_ok == 0);
  driver.engine.begin(of_peer(0));
  const auto ask = driver.ask();
  REQUIRE(ask);
  CHECK(ask->known_version == 0);
  CHECK_FALSE(driver.sends(progress(7)).failure);
}

TEST_CASE("all that are vouched for are greeted in order, and eight strangers at most") {
  Driver driver({"w1"});
  std::vector<Member> members{member("w1"), member("", MemberStatus::alive, false)};
  for (int i = 0; i < 20; ++i)
    members.push_back(member("s" + std::to_string(i), MemberStatus::alive, false));
  members.push_back(member("w2"));
  const auto greeted = driver.engine.to_greet(members);
  REQUIRE(greeted.size() == 10);
  CHECK(greeted[0] == 0);
  CHECK(greeted[1] == 22);
  CHECK(std::set<PeerId>(greeted.begin(), greeted.end()).size() == 10);
  CHECK_FALSE(std::ranges::count(greeted, PeerId{1}));
}

}  // namespace dpwa
