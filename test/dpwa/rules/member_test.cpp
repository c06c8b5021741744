#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "dpwa/rules/member.h"
#include "test/dpwa/rules/membership_fixture.h"

using namespace std::chrono_literals;
using namespace dpwa;
using dpwa::test::claim;
using dpwa::test::start;

namespace {

// The own node is w0, in a cluster of so many.
Membership node_among(std::size_t count, std::uint64_t incarnation = 0) {
  std::vector<MemberClaim> seeds;
  for (std::size_t rank = 1; rank < count; ++rank)
    seeds.push_back(claim("w" + std::to_string(rank), incarnation));
  return Membership(claim("w0", 100), seeds, {});
}

}  // namespace

TEST_CASE("of the members that are alive any is asked") {
  Membership node = node_among(8, 1);
  for (int i = 0; i < 3; ++i) node.failed("w3", start);
  node.reached("w5", 1, start);
  REQUIRE(node.members()[2].status() == MemberStatus::suspect);
  Random random(9);
  std::map<std::string, int> asked;
  for (int i = 0; i < 6000; ++i) ++asked[node.members()[*node.any_alive(random)].claim.name];
  CHECK(asked.size() == 6);
  CHECK_FALSE(asked.contains("w3"));
  for (const auto& [name, times] : asked) CHECK(std::abs(times - 1000) < 150);
}

TEST_CASE(
    "the address of a seed is nobody else's until the file has the seed no longer, or moves it") {
  const auto hears_of = [](Membership& node, const std::string& name, std::uint16_t port) {
    MemberExchange exchange;
    exchange.claims = {claim("w1", 1), claim(name, 1)};
    exchange.claims.back().port = port;
    node.merge("w1", 1, exchange, start);
    return node.find(name).has_value();
  };
  Membership node = node_among(4);
  const std::uint16_t first = claim("w2", 0).port;
  CHECK_FALSE(hears_of(node, "a", first));
  MemberClaim moved = claim("w2", 0);
  moved.port = 9;
  node.list(moved, start);
  CHECK(hears_of(node, "b", first));
  CHECK_FALSE(hears_of(node, "c", 9));
  const std::uint16_t third = claim("w3", 0).port;
  CHECK_FALSE(hears_of(node, "d", third));
  node.unlist("w3");
  CHECK(hears_of(node, "e", third));
}

namespace dpwa {
namespace {

MemberClaim claim(std::uint64_t incarnation, std::uint32_t refutation, MemberStatus status) {
  return {"w1", {"10.0.0.1"}, 7000, incarnation, refutation, status};
}

}  // namespace

TEST_CASE("the later process wins, then the later refutation, then the graver status") {
  const std::vector<MemberClaim> rising{
      claim(1, 0, MemberStatus::alive), claim(1, 0, MemberStatus::suspect),
      claim(1, 0, MemberStatus::dead),  claim(1, 0, MemberStatus::left),
      claim(1, 1, MemberStatus::alive), claim(1, 1, MemberStatus::left),
      claim(2, 0, MemberStatus::alive), claim(2, 0, MemberStatus::dead)};
  for (std::size_t i = 0; i < rising.size(); ++i) {
    for (std::size_t j = 0; j < rising.size(); ++j) {
      CAPTURE(i);
      CAPTURE(j);
      CHECK(supersedes(rising[i], rising[j]) == (i > j));
    }
  }
}

TEST_CASE("a digest tells processes and their refutations apart, not what is said of them") {
  const MemberClaim alive = claim(1, 0, MemberStatus::alive);
  MemberClaim other = alive;
  other.name = "w2";
  CHECK(digest_of(alive) == digest_of(claim(1, 0, MemberStatus::suspect)));
  CHECK(digest_of(alive) != digest_of(claim(2, 0, MemberStatus::alive)));
  CHECK(digest_of(alive) != digest_of(claim(1, 1, MemberStatus::alive)));
  CHECK(digest_of(alive) != digest_of(other));
}

TEST_CASE("news is told so often and no more, what was told least first") {
  MemberNews news;
  for (std::size_t member = 0; member < 5; ++member) news.add(member);
  CHECK(news.take(3, 2) == std::vector<std::size_t>{0, 1, 2});
  CHECK(news.take(3, 2) == std::vector<std::size_t>{3, 4, 0});  // 0 for the last time
  CHECK(news.take(9, 2) == std::vector<std::size_t>{1, 2, 3, 4});
  CHECK(news.empty());
  CHECK(news.take(9, 2).empty());
}

TEST_CASE("news of a member that changes again is told afresh, and never twice at once") {
  MemberNews news;
  news.add(7);
  news.add(7);
  CHECK(news.size() == 1);
  CHECK(news.take(9, 2) == std::vector<std::size_t>{7});
  news.add(7);
  CHECK(news.take(9, 2) == std::vector<std::size_t>{7});
  CHECK(news.take(9, 2) == std::vector<std::size_t>{7});
  CHECK(news.empty());
  news.add(7);
  news.remove(7);
  news.remove(7);
  CHECK(news.empty());
}

TEST_CASE("news is told more often among more nodes, by their logarithm") {
  CHECK(MemberNews::limit(2) >= 3);
  CHECK(MemberNews::limit(1000) <= 3 * MemberNews::limit(10));
  CHECK(MemberNews::limit(1000) > MemberNews::limit(10));
}

}  // namespace dpwa
