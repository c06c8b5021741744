#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/rules/member.h"
#include "dpwa/rules/member_table.h"
#include "test/dpwa/rules/membership_fixture.h"

using namespace std::chrono_literals;
using namespace dpwa;
using dpwa::test::claim;
using dpwa::test::start;

namespace {

std::string name_of(std::size_t rank) {
  return "w" + std::to_string(rank);
}

std::vector<MemberClaim> claims_of(std::size_t count, std::uint64_t incarnation = 0) {
  std::vector<MemberClaim> claims;
  for (std::size_t rank = 0; rank < count; ++rank)
    claims.push_back(claim(name_of(rank), incarnation));
  return claims;
}

std::shared_ptr<const Seeds> seeds(std::size_t count, std::uint64_t incarnation = 0) {
  return std::make_shared<const Seeds>(claims_of(count, incarnation), start);
}

// Two tables of one node, which hear and do the same. One shares its seeds with other nodes, the
// other has them for itself.
class Twins {
 public:
  static constexpr std::size_t count = 12;
  static constexpr std::size_t self = 5;

  Twins(bool open, std::uint64_t seed)
      : shared_(claim(name_of(self), 100), seeds(count), self, options(open)),
        own_(claim(name_of(self), 100), others(), options(open)),
        random_(seed) {}

  void do_something() {
    now_ += std::chrono::milliseconds(random_.below(2000));
    const std::string name = name_of(random_.below(count + 6));
    const std::uint64_t incarnation = random_.below(3);
    switch (random_.below(9)) {
      case 0:
        return both([&](Membership& table) { table.heard(name, incarnation, now_); });
      case 1:
        return both([&](Membership& table) { table.reached(name, incarnation, now_); });
      case 2:
        return both([&](Membership& table) { table.failed(name, now_); });
      case 3:
        return both([&](Membership& table) { table.tick(now_); });
      case 4:
        return both([&](Membership& table) { table.keep(name); });
      case 5: {
        MemberClaim listed = claim(name, 0);
        listed.port = static_cast<std::uint16_t>(1 + random_.below(20));
        return both([&](Membership& table) { table.list(listed, now_); });
      }
      case 6:
        return both([&](Membership& table) { table.unlist(name); });
      default:
        return hear(name, incarnation);
    }
  }

  void compare() {
    REQUIRE(shared_.members().size() == own_.members().size());
    for (PeerId place = 0; place < own_.members().size(); ++place) {
      const Member& a = shared_.members()[place];
      const Member& b = own_.members()[place];
      CHECK(a.claim == b.claim);
      CHECK(a.seed == b.seed);
      CHECK(a.status() == b.status());
      CHECK(std::pair(a.heard, a.changed) == std::pair(b.heard, b.changed));
      if (!b.claim.name.empty()) CHECK(shared_.find(b.claim.name) == place);
    }
    for (std::size_t rank = 0; rank < count + 6; ++rank) {
      CHECK(shared_.find(name_of(rank)) == own_.find(name_of(rank)));
      CHECK(shared_.admission(name_of(rank)) == own_.admission(name_of(rank)));
    }
    CHECK(shared_.digest() == own_.digest());
    CHECK(shared_.running() == own_.running());
    CHECK(shared_.version() == own_.version());
    CHECK(shared_.changed_since(1) == own_.changed_since(1));
    Random a(1);
    Random b(1);
    CHECK(shared_.to_probe(a) == own_.to_probe(b));
    CHECK(shared_.to_meet(3, now_, a) == own_.to_meet(3, now_, b));
    CHECK(shared_.request("w1", now_).claims == own_.request("w1", now_).claims);
  }

 private:
  static MembershipOptions options(bool open) {
    MembershipOptions options;
    options.open = open;
    options.forget = 5s;
    options.max_members = count + 3;
    return options;
  }
  static std::vector<MemberClaim> others() {
    std::vector<MemberClaim> claims = claims_of(count);
    claims.erase(claims.begin() + self);
    return claims;
  }
  template <typename Do>
  void both(const Do& act) {
    act(shared_);
    act(own_);
  }
  void hear(const std::string& from, std::uint64_t incarnation) {
    MemberExchange exchange;
    exchange.claims.push_back(claim(from, incarnation));
    for (int i = 0; i < 3; ++i) {
      MemberClaim told = claim(name_of(random_.below(count + 6)), random_.below(3));
      told.status = static_cast<MemberStatus>(1 + random_.below(4));
      if (random_.bernoulli(0.3)) told.port = claim(name_of(random_.below(count)), 0).port;
      exchange.claims.push_back(told);
    }
    both([&](Membership& table) { table.merge(from, incarnation, exchange, now_); });
  }

  Membership shared_;
  Membership own_;
  Random random_;
  TimePoint now_ = start;
};

}  // namespace

TEST_CASE("nodes that share their seeds hold all others, in the order of the ranks") {
  const auto shared = seeds(3);
  const MemberTable middle(shared, 1);
  REQUIRE(middle.size() == 2);
  CHECK(middle[0].claim.name == "w0");
  CHECK(middle[1].claim.name == "w2");
  CHECK(middle.find("w2") == 1);
  CHECK_FALSE(middle.find("w1"));
  CHECK(std::ranges::distance(middle.begin(), middle.end()) == 2);
}

TEST_CASE("a table that shares its seeds is the same as one that has them for itself") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Twins twins(seed % 2 == 0, seed);
    twins.compare();
    for (int i = 0; i < 200; ++i) {
      twins.do_something();
      twins.compare();
    }
  }
}

TEST_CASE("a change of one node's table is not seen in the table of another") {
  const auto shared = seeds(3);
  MemberTable first(shared, 0);
  const MemberTable second(shared, 1);
  first.edit(1).claim.status = MemberStatus::dead;
  CHECK(second[1].claim.status == MemberStatus::alive);
  first.free(1);
  CHECK(second.find("w2") == 1);
  CHECK_FALSE(first.find("w2"));
}

TEST_CASE("memory grows with the members that a node has to do with, not with the cluster") {
  constexpr std::size_t count = 1000;
  const auto shared = seeds(count, 1);
  std::vector<Membership> nodes;
  for (std::size_t rank = 0; rank < count; ++rank)
    nodes.emplace_back(shared->at(rank).claim, shared, rank, MembershipOptions{});
  CHECK(nodes[0].digest() == nodes[count - 1].digest());
  CHECK(nodes[0].running() == count - 1);
  Random random(3);
  TimePoint now = start;
  std::map<std::size_t, std::size_t> dealt;  // exchanges that a node took part in
  for (int i = 0; i < 2000; ++i) {
    now += 10ms;
    const std::size_t from = random.below(count);
    const std::size_t to = (from + 1 + random.below(count - 1)) % count;
    ++dealt[from];
    ++dealt[to];
    const MemberExchange request = nodes[from].request(name_of(to), now);
    nodes[to].merge(name_of(from), 1, request, now);
    nodes[from].reached(name_of(to), 1, now);
    nodes[from].merge_answer(name_of(to), 1, nodes[to].answer(name_of(from), request, now), now);
    nodes[from].tick(now);
  }
  for (std::size_t rank = 0; rank < count; ++rank) {
    CHECK(nodes[rank].members().own_places().size() <= dealt[rank]);
    CHECK(nodes[rank].running() == count - 1);
  }
}

TEST_CASE("of the members that are alive any is asked, those without an entry of their own too") {
  Membership node(claim("w0", 1), seeds(8, 1), 0, {});
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
  Membership node(claim("w0", 100), seeds(4), 0, {});
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
