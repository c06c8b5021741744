#include "adapters/collective/next_group.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace dpwa::collective {
namespace {

using Reach = Sight::Reach;
using Step = NextGroup::Step;

GroupMembers group_of(std::uint64_t epoch, const std::vector<std::size_t>& places) {
  GroupMembers group{epoch, {}};
  for (const std::size_t place : places) group.members.push_back({place, 100 + place});
  return group;
}

// Nodes w0, w1, ... that all answer and are in one group.
std::vector<Sight> all_in(const GroupMembers& group, std::size_t nodes) {
  std::vector<Sight> sights(nodes);
  for (std::size_t place = 0; place < nodes; ++place) {
    Sight& sight = sights[place];
    sight.name = "w" + std::to_string(place);
    sight.reach = Reach::answers;
    sight.incarnation = 100 + place;
    sight.notes.formed = group;
    sight.notes.seeks = true;
  }
  return sights;
}

std::vector<std::size_t> places(const GroupMembers& group) {
  std::vector<std::size_t> found;
  for (const auto& member : group.members) found.push_back(member.place);
  return found;
}

using Places = std::vector<std::size_t>;

}  // namespace

TEST_CASE("the first group is of all nodes of the file, and the first one hosts it") {
  auto sights = all_in({}, 3);
  const NextGroup next = next_group(sights, 0, false);
  CHECK(next.step == Step::host);
  CHECK(next.group == group_of(1, {0, 1, 2}));
  CHECK(next_group(sights, 1, false).step == Step::wait);
  sights[0].notes.vote = next.group;
  CHECK(next_group(sights, 1, false).step == Step::wait);  // no store yet
  CHECK(next_group(sights, 0, false).group == next.group);
  sights[0].notes.store_port = 4711;
  const NextGroup follows = next_group(sights, 1, false);
  CHECK(follows.step == Step::follow);
  CHECK(follows.group == next.group);
  CHECK(follows.host == 0);
  CHECK(follows.port == 4711);
  CHECK(next_group(sights, 0, false).group == next.group);  // and not a new one at every look
  sights[2].incarnation = 7;                                // started again meanwhile
  CHECK(next_group(sights, 0, false).group.epoch == 2);
  sights[2].reach = Reach::refused;
  CHECK(next_group(sights, 0, false).step == Step::wait);
}

TEST_CASE("those that are left of a group go on under the next epoch, whoever has died") {
  for (std::size_t dead = 0; dead < 3; ++dead) {
    CAPTURE(dead);
    auto sights = all_in(group_of(4, {0, 1, 2}), 3);
    sights[dead].reach = Reach::refused;
    Places left{0, 1, 2};
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(dead));
    const NextGroup next = next_group(sights, left[0], false);
    CHECK(next.step == Step::host);
    CHECK(next.group == group_of(5, left));
    sights[left[0]].notes.vote = next.group;
    sights[left[0]].notes.store_port = 1;
    CHECK(next_group(sights, left[1], false).step == Step::follow);
  }
}

TEST_CASE("of two nodes the one that is left goes on where the other has said that it leaves") {
  for (std::size_t self = 0; self < 2; ++self) {
    for (const auto reach : {Reach::answers, Reach::silent, Reach::refused}) {
      auto sights = all_in(group_of(1, {0, 1}), 2);
      sights[1 - self].notes.left = true;  // and may be gone since
      sights[1 - self].reach = reach;
      CHECK(next_group(sights, self, false).step == Step::host);
    }
  }
}

TEST_CASE("of two nodes the first one alone goes on where the other refuses connections") {
  for (std::size_t self = 0; self < 2; ++self) {
    auto sights = all_in(group_of(1, {0, 1}), 2);
    sights[1 - self].reach = Reach::refused;
    const NextGroup next = next_group(sights, self, false);
    CHECK(next.step == (self == 0 ? Step::host : Step::minority));
    if (self == 1)
      CHECK(next.why ==
            "1 of 2 nodes of the last group are not a majority of it; missing: 'w0' (not running)");
    sights[1 - self].reach = Reach::answers;  // as another process
    sights[1 - self].incarnation = 9;
    sights[1 - self].notes = {};
    CHECK(next_group(sights, self, false).step == Step::host);
  }
}

TEST_CASE("a refused connection does not make a part the majority, nor a remembered process") {
  auto sights = all_in(group_of(3, {0, 1, 2}), 3);
  for (const std::size_t place : {0, 1}) sights[place].reach = Reach::refused;
  CHECK(next_group(sights, 2, false).step == Step::minority);
  sights[0].incarnation = 7;  // it answered as another process once
  CHECK(next_group(sights, 2, false).step == Step::minority);
}

TEST_CASE("of two nodes that lose sight of each other the first goes on alone") {
  for (std::size_t self = 0; self < 2; ++self) {
    auto sights = all_in(group_of(1, {0, 1}), 2);
    Sight& other = sights[1 - self];
    other.reach = Reach::silent;
    CHECK(next_group(sights, self, false).step == Step::wait);
    other.given_up = true;
    const NextGroup next = next_group(sights, self, false);
    CHECK(next.step == (self == 0 ? Step::host : Step::minority));
    if (self == 1)
      CHECK(
          next.why ==
          "1 of 2 nodes of the last group are not a majority of it; missing: 'w0' (not reachable)");
  }
}

TEST_CASE("a part without the majority of the last group does not go on") {
  auto sights = all_in(group_of(3, {0, 1, 2, 3, 4}), 5);
  for (std::size_t place = 2; place < 5; ++place) {
    sights[place].reach = Reach::silent;
    sights[place].given_up = true;
  }
  CHECK(next_group(sights, 0, false).step == Step::minority);
  sights[4].reach = Reach::refused;
  CHECK(next_group(sights, 0, false).step == Step::minority);
  sights[4].notes.left = true;  // two of four, the first of them among the two
  CHECK(next_group(sights, 0, false).step == Step::host);
}

TEST_CASE("a group that may have formed counts like one that has") {
  auto sights = all_in(group_of(4, {0, 1, 2, 3, 4}), 5);
  for (auto& sight : sights) sight.notes.formed.epoch = 4;
  sights[2].notes.vote = group_of(5, {0, 1, 2});  // it does not know what became of it
  for (std::size_t place = 0; place < 2; ++place) {
    sights[place].reach = Reach::silent;
    sights[place].given_up = true;
  }
  CHECK(next_group(sights, 2, false).step == Step::minority);
  sights[2].notes.vote = {};
  CHECK(next_group(sights, 2, false).step == Step::host);
}

TEST_CASE("a member that is given up by another one is not waited for") {
  auto sights = all_in(group_of(2, {0, 1, 2}), 3);
  sights[2].reach = Reach::silent;
  CHECK(next_group(sights, 0, false).step == Step::wait);
  sights[1].notes.lost = {2};
  CHECK(places(next_group(sights, 0, false).group) == Places{0, 1});
  sights[2].reach = Reach::answers;  // it hangs, but its network side does not
  sights[2].notes.seeks = false;
  CHECK(places(next_group(sights, 0, false).group) == Places{0, 1});
  CHECK(next_group(sights, 2, false).step == Step::wait);
}

TEST_CASE("one that was given up and looks for its group again is in it") {
  auto sights = all_in(group_of(2, {0, 1}), 2);
  sights[1].notes.lost = {0};  // by the one that was alone meanwhile
  CHECK(next_group(sights, 0, false).group == group_of(3, {0, 1}));
  CHECK(next_group(sights, 1, false).step == Step::wait);
}

TEST_CASE("a newcomer whose host has ended holds up none of the others") {
  auto sights = all_in(group_of(2, {1, 2, 3}), 4);
  sights[0].notes.formed = {};
  for (auto& sight : sights) sight.notes.vote = group_of(3, {0, 1, 2, 3});
  sights[1].reach = Reach::refused;
  CHECK(next_group(sights, 2, false, 3).group == group_of(4, {2, 3}));
}

TEST_CASE("where two have given up each other, the third goes with the first") {
  auto sights = all_in(group_of(2, {0, 1, 2}), 3);
  sights[0].notes.lost = {1};
  sights[1].notes.lost = {0};
  CHECK(next_group(sights, 2, false).step == Step::wait);
  sights[0].notes.vote = group_of(3, {0, 2});
  sights[0].notes.store_port = 5;
  sights[1].notes.vote = group_of(3, {1, 2});
  sights[1].notes.store_port = 6;
  const NextGroup next = next_group(sights, 2, false);
  CHECK(next.step == Step::follow);
  CHECK(next.host == 0);
}

TEST_CASE("a node that was started again is taken in between two steps alone") {
  auto sights = all_in(group_of(2, {0, 2}), 3);
  for (const std::size_t place : {0, 2}) sights[place].notes.seeks = false;
  sights[1].notes = {};
  CHECK_FALSE(has_newcomers(sights, 0));
  sights[1].notes.seeks = true;
  CHECK(has_newcomers(sights, 0));
  CHECK(is_left_behind(sights, 1));
  CHECK_FALSE(is_left_behind(sights, 2));
  CHECK(next_group(sights, 1, false).step == Step::wait);
  const NextGroup next = next_group(sights, 0, true);
  CHECK(next.step == Step::host);
  CHECK(next.group == group_of(3, {0, 1, 2}));
  sights[0].notes.vote = next.group;
  sights[0].notes.store_port = 9;
  CHECK(next_group(sights, 1, false).step == Step::follow);
  CHECK(next_group(sights, 2, true).step == Step::follow);
  // In the middle of a step they would have no part in it.
  for (const std::size_t place : {0, 2}) sights[place].notes.seeks = true;
  sights[0].notes.vote = {};
  CHECK(places(next_group(sights, 0, false).group) == Places{0, 2});
  CHECK(places(next_group(sights, 0, true).group) == Places{0, 1, 2});
}

TEST_CASE("a member that slept through a group comes anew") {
  auto sights = all_in(group_of(3, {0, 1}), 3);
  for (const std::size_t place : {0, 1}) sights[place].notes.seeks = false;
  sights[2].notes.formed = group_of(2, {0, 1, 2});
  CHECK(is_left_behind(sights, 2));
  CHECK(has_newcomers(sights, 0));
  CHECK(next_group(sights, 2, false).step == Step::wait);
}

TEST_CASE("one that has finished is missed by nobody") {
  auto sights = all_in(group_of(3, {0, 1, 2}), 3);
  sights[0].finished = true;
  sights[1].notes.left = true;
  CHECK(places(next_group(sights, 2, false).group) == Places{2});
}

TEST_CASE("a group that has formed for some of its members is awaited by the others") {
  auto sights = all_in(group_of(3, {0, 1}), 3);
  for (const std::size_t place : {0, 1}) sights[place].notes.seeks = false;
  sights[2].notes = {};
  const GroupMembers next = group_of(4, {0, 1, 2});
  for (auto& sight : sights) sight.notes.vote = next;
  sights[2].notes.formed = next;
  for (const std::size_t self : {0, 1}) {
    CHECK(next_group(sights, self, true).group == next);
    sights[self].notes.seeks = true;  // their group has broken meanwhile
    CHECK(next_group(sights, self, false).group == next);
    sights[self].notes.seeks = false;
  }
  CHECK(next_group(sights, 0, true, 4).step == Step::wait);
}

TEST_CASE("an attempt that came to nothing is made again under another epoch") {
  auto sights = all_in(group_of(3, {0, 1}), 2);
  sights[0].notes.vote = group_of(4, {0, 1});
  sights[0].notes.store_port = 8;
  CHECK(next_group(sights, 1, false, 0).step == Step::follow);
  CHECK(next_group(sights, 1, false, 4).step == Step::wait);
  CHECK(next_group(sights, 0, false, 4).group == group_of(5, {0, 1}));
}

TEST_CASE("a node with other settings is not admitted, and does not count as the one it was") {
  auto sights = all_in(group_of(3, {0, 1}), 3);
  for (std::size_t place : {0, 1}) sights[place].notes.seeks = false;
  sights[2].notes.formed = {};
  CHECK(has_newcomers(sights, 0));
  sights[2].differs = "--seed: 2 there, 1 here";
  CHECK_FALSE(has_newcomers(sights, 0));
  CHECK(next_group(sights, 0, true).step == Step::wait);
  // A member that was started again so: the others go on without it.
  auto left = all_in(group_of(3, {0, 1, 2}), 3);
  left[2].incarnation = 7;
  left[2].notes.formed = {};
  left[2].differs = "--seed: 2 there, 1 here";
  const NextGroup next = next_group(left, 0, true);
  CHECK(next.step == Step::host);
  CHECK(places(next.group) == Places{0, 1});
}

}  // namespace dpwa::collective
