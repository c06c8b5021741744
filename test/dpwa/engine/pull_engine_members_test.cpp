#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "dpwa/engine/pull_engine.h"
#include "test/dpwa/engine/pull_driver.h"

namespace dpwa {
namespace {

using testing::of_peer;
using testing::progress;
using Driver = testing::PullDriver;

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
