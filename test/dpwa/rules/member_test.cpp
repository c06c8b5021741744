#include "dpwa/rules/member.h"

#include <doctest/doctest.h>

#include <algorithm>

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
