#include "dpwa/engine/rank.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dpwa {
namespace {

struct Named {
  std::string name;
  bool seed;
};

// The table of `nodes[self]`, in the order of the others rotated by `self`, with a free place.
std::vector<Member> table_of(const std::vector<Named>& nodes, std::size_t self) {
  std::vector<Member> members(1);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Named& other = nodes[(self + i) % nodes.size()];
    members.emplace_back();
    members.back().claim.name = other.name;
    members.back().seed = other.seed;
  }
  return members;
}

}  // namespace

TEST_CASE("every node gives every node the same rank: the file's by name, then those that joined") {
  const std::vector<Named> nodes{
      {"w10", true}, {"a", false}, {"w2", true}, {"z", false}, {"w1", true}};
  const std::vector<std::size_t> ranks{1, 3, 2, 4, 0};
  for (std::size_t self = 0; self < nodes.size(); ++self) {
    const auto members = table_of(nodes, self);
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      CAPTURE(nodes[self].name);
      CAPTURE(nodes[node].name);
      CHECK(rank_of(nodes[node].name, members, nodes[self].name, nodes[self].seed) == ranks[node]);
    }
  }
}

TEST_CASE("a node that joins changes no rank of the file's nodes, nor does one that dies") {
  std::vector<Named> nodes{{"w1", true}, {"w2", true}, {"j", false}};
  auto members = table_of(nodes, 0);
  CHECK(rank_of("w2", members, "w1", true) == 1);
  CHECK(rank_of("j", members, "w1", true) == 2);
  nodes.push_back({"a", false});
  members = table_of(nodes, 0);
  CHECK(rank_of("w2", members, "w1", true) == 1);
  CHECK(rank_of("j", members, "w1", true) == 3);
  for (Member& member : members) member.claim.status = MemberStatus::dead;
  CHECK(rank_of("w2", members, "w1", true) == 1);
}

}  // namespace dpwa
