#include "adapters/collective/next_group.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace dpwa::collective {
namespace {

using Reach = MemberView::Reach;
using Step = NextGroup::Step;

GroupMembers group_of(std::uint64_t epoch, const std::vector<std::size_t>& places) {
  GroupMembers group{epoch, {}};
  for (const std::size_t place : places) group.members.push_back({place, 100 + place});
  return group;
}

// Nodes w0, w1, ... that all answer and are in one group.
std::vector<MemberView> all_in(const GroupMembers& group, std::size_t nodes) {
  std::vector<MemberView> views(nodes);
  for (std::size_t place = 0; place < nodes; ++place) {
    MemberView& view = views[place];
    view.name = "w" + std::to_string(place);
    view.reach = Reach::answers;
    view.incarnation = 100 + place;
    view.notes.formed = group;
    view.notes.seeks = true;
  }
  return views;
}

std::vector<std::size_t> places(const GroupMembers& group) {
  std::vector<std::size_t> found;
  for (const auto& member : group.members) found.push_back(member.place);
  return found;
}

using Places = std::vector<std::size_t>;

}  // namespace

TEST_CASE("the first group is of all nodes of the file, and the first one hosts it") {
  auto views = all_in({}, 3);
  const NextGroup next = next_group(views, 0, false);
  CHECK(next.step == Step::host);
  CHECK(next.group == group_of(1, {0, 1, 2}));
  CHECK(next_group(views, 1, false).step == Step::wait);
  views[0].notes.vote = next.group;
  CHECK(next_group(views, 1, false).step == Step::wait);  // no store yet
  CHECK(next_group(views, 0, false).group == next.group);
  views[0].notes.store_port = 4711;
  const NextGroup follows = next_group(views, 1, false);
  CHECK(follows.step == Step::follow);
  CHECK(follows.group == next.group);
  CHECK(follows.host == 0);
  CHECK(follows.port == 4711);
  CHECK(next_group(views, 0, false).group == next.group);  // and not a new one at every look
  views[2].incarnation = 7;                                // started again meanwhile
  CHECK(next_group(views, 0, false).group.epoch == 2);
  views[2].reach = Reach::refused;
  CHECK(next_group(views, 0, false).step == Step::wait);
}

TEST_CASE("those that are left of a group go on under the next epoch, whoever has died") {
  for (std::size_t dead = 0; dead < 3; ++dead) {
    CAPTURE(dead);
    auto views = all_in(group_of(4, {0, 1, 2}), 3);
    views[dead].reach = Reach::refused;
    Places left{0, 1, 2};
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(dead));
    const NextGroup next = next_group(views, left[0], false);
    CHECK(next.step == Step::host);
    CHECK(next.group == group_of(5, left));
    views[left[0]].notes.vote = next.group;
    views[left[0]].notes.store_port = 1;
    CHECK(next_group(views, left[1], false).step == Step::follow);
  }
}

TEST_CASE("of two nodes the one that is left goes on where the other has said that it leaves") {
  for (std::size_t self = 0; self < 2; ++self) {
    for (const auto reach : {Reach::answers, Reach::silent, Reach::refused}) {
      auto views = all_in(group_of(1, {0, 1}), 2);
      views[1 - self].notes.left = true;  // and may be gone since
      views[1 - self].reach = reach;
      CHECK(next_group(views, self, false).step == Step::host);
    }
  }
}

TEST_CASE("of two nodes the first one alone goes on where the other refuses connections") {
  for (std::size_t self = 0; self < 2; ++self) {
    auto views = all_in(group_of(1, {0, 1}), 2);
    views[1 - self].reach = Reach::refused;
    const NextGroup next = next_group(views, self, false);
    CHECK(next.step == (self == 0 ? Step::host : Step::minority));
    if (self == 1)
      CHECK(next.why ==
            "1 of 2 nodes of the last group are not a majority of it; missing: 'w0' (not running)");
    views[1 - self].reach = Reach::answers;  // as another process
    views[1 - self].incarnation = 9;
    views[1 - self].notes = {};
    CHECK(next_group(views, self, false).step == Step::host);
  }
}

TEST_CASE("a refused connection does not make a part the majority, nor a remembered process") {
  auto views = all_in(group_of(3, {0, 1, 2}), 3);
  for (const std::size_t place : {0, 1}) views[place].reach = Reach::refused;
  CHECK(next_group(views, 2, false).step == Step::minority);
  views[0].incarnation = 7;  // it answered as another process once
  CHECK(next_group(views, 2, false).step == Step::minority);
}

TEST_CASE("of two nodes that lose sight of each other the first goes on alone") {
  for (std::size_t self = 0; self < 2; ++self) {
    auto views = all_in(group_of(1, {0, 1}), 2);
    MemberView& other = views[1 - self];
    other.reach = Reach::silent;
    CHECK(next_group(views, self, false).step == Step::wait);
    other.given_up = true;
    const NextGroup next = next_group(views, self, false);
    CHECK(next.step == (self == 0 ? Step::host : Step::minority));
    if (self == 1)
      CHECK(
          next.why ==
          "1 of 2 nodes of the last group are not a majority of it; missing: 'w0' (not reachable)");
  }
}

TEST_CASE("a part without the majority of the last group does not go on") {
  auto views = all_in(group_of(3, {0, 1, 2, 3, 4}), 5);
  for (std::size_t place = 2; place < 5; ++place) {
    views[place].reach = Reach::silent;
    views[place].given_up = true;
  }
  CHECK(next_group(views, 0, false).step == Step::minority);
  views[4].reach = Reach::refused;
  CHECK(next_group(views, 0, false).step == Step::minority);
  views[4].notes.left = true;  // two of four, the first of them among the two
  CHECK(next_group(views, 0, false).step == Step::host);
}

TEST_CASE("a group that may have formed counts like one that has") {
  auto views = all_in(group_of(4, {0, 1, 2, 3, 4}), 5);
  for (auto& view : views) view.notes.formed.epoch = 4;
  views[2].notes.vote = group_of(5, {0, 1, 2});  // it does not know what became of it
  for (std::size_t place = 0; place < 2; ++place) {
    views[place].reach = Reach::silent;
    views[place].given_up = true;
  }
  CHECK(next_group(views, 2, false).step == Step::minority);
  views[2].notes.vote = {};
  CHECK(next_group(views, 2, false).step == Step::host);
}

TEST_CASE("a member that is given up by another one is not waited for") {
  auto views = all_in(group_of(2, {0, 1, 2}), 3);
  views[2].reach = Reach::silent;
  CHECK(next_group(views, 0, false).step == Step::wait);
  views[1].notes.lost = {2};
  CHECK(places(next_group(views, 0, false).group) == Places{0, 1});
  views[2].reach = Reach::answers;  // it hangs, but its network side does not
  views[2].notes.seeks = false;
  CHECK(places(next_group(views, 0, false).group) == Places{0, 1});
  CHECK(next_group(views, 2, false).step == Step::wait);
}

TEST_CASE("one that was given up and looks for its group again is in it") {
  auto views = all_in(group_of(2, {0, 1}), 2);
  views[1].notes.lost = {0};  // by the one that was alone meanwhile
  CHECK(next_group(views, 0, false).group == group_of(3, {0, 1}));
  CHECK(next_group(views, 1, false).step == Step::wait);
}

TEST_CASE("a newcomer whose host has ended holds up none of the others") {
  auto views = all_in(group_of(2, {1, 2, 3}), 4);
  views[0].notes.formed = {};
  for (auto& view : views) view.notes.vote = group_of(3, {0, 1, 2, 3});
  views[1].reach = Reach::refused;
  CHECK(next_group(views, 2, false, 3).group == group_of(4, {2, 3}));
}

TEST_CASE("where two have given up each other, the third goes with the first") {
  auto views = all_in(group_of(2, {0, 1, 2}), 3);
  views[0].notes.lost = {1};
  views[1].notes.lost = {0};
  CHECK(next_group(views, 2, false).step == Step::wait);
  views[0].notes.vote = group_of(3, {0, 2});
  views[0].notes.store_port = 5;
  views[1].notes.vote = group_of(3, {1, 2});
  views[1].notes.store_port = 6;
  const NextGroup next = next_group(views, 2, false);
  CHECK(next.step == Step::follow);
  CHECK(next.host == 0);
}

TEST_CASE("a node that was started again is taken in between two steps alone") {
  auto views = all_in(group_of(2, {0, 2}), 3);
  for (const std::size_t place : {0, 2}) views[place].notes.seeks = false;
  views[1].notes = {};
  CHECK_FALSE(has_newcomers(views, 0));
  views[1].notes.seeks = true;
  CHECK(has_newcomers(views, 0));
  CHECK(is_left_behind(views, 1));
  CHECK_FALSE(is_left_behind(views, 2));
  CHECK(next_group(views, 1, false).step == Step::wait);
  const NextGroup next = next_group(views, 0, true);
  CHECK(next.step == Step::host);
  CHECK(next.group == group_of(3, {0, 1, 2}));
  views[0].notes.vote = next.group;
  views[0].notes.store_port = 9;
  CHECK(next_group(views, 1, false).step == Step::follow);
  CHECK(next_group(views, 2, true).step == Step::follow);
  // In the middle of a step they would have no part in it.
  for (const std::size_t place : {0, 2}) views[place].notes.seeks = true;
  views[0].notes.vote = {};
  CHECK(places(next_group(views, 0, false).group) == Places{0, 2});
  CHECK(places(next_group(views, 0, true).group) == Places{0, 1, 2});
}

TEST_CASE("a member that slept through a group comes anew") {
  auto views = all_in(group_of(3, {0, 1}), 3);
  for (const std::size_t place : {0, 1}) views[place].notes.seeks = false;
  views[2].notes.formed = group_of(2, {0, 1, 2});
  CHECK(is_left_behind(views, 2));
  CHECK(has_newcomers(views, 0));
  CHECK(next_group(views, 2, false).step == Step::wait);
}

TEST_CASE("one that has finished is missed by nobody") {
  auto views = all_in(group_of(3, {0, 1, 2}), 3);
  views[0].finished = true;
  views[1].notes.left = true;
  CHECK(places(next_group(views, 2, false).group) == Places{2});
}

TEST_CASE("a group that has formed for some of its members is awaited by the others") {
  auto views = all_in(group_of(3, {0, 1}), 3);
  for (const std::size_t place : {0, 1}) views[place].notes.seeks = false;
  views[2].notes = {};
  const GroupMembers next = group_of(4, {0, 1, 2});
  for (auto& view : views) view.notes.vote = next;
  views[2].notes.formed = next;
  for (const std::size_t self : {0, 1}) {
    CHECK(next_group(views, self, true).group == next);
    views[self].notes.seeks = true;  // their group has broken meanwhile
    CHECK(next_group(views, self, false).group == next);
    views[self].notes.seeks = false;
  }
  CHECK(next_group(views, 0, true, 4).step == Step::wait);
}

TEST_CASE("an attempt that came to nothing is made again under another epoch") {
  auto views = all_in(group_of(3, {0, 1}), 2);
  views[0].notes.vote = group_of(4, {0, 1});
  views[0].notes.store_port = 8;
  CHECK(next_group(views, 1, false, 0).step == Step::follow);
  CHECK(next_group(views, 1, false, 4).step == Step::wait);
  CHECK(next_group(views, 0, false, 4).group == group_of(5, {0, 1}));
}

TEST_CASE("a node with other settings is not admitted, and does not count as the one it was") {
  auto views = all_in(group_of(3, {0, 1}), 3);
  for (std::size_t place : {0, 1}) views[place].notes.seeks = false;
  views[2].notes.formed = {};
  CHECK(has_newcomers(views, 0));
  views[2].differs = "--seed: 1 on 'a' and 2 on 'c'";
  CHECK_FALSE(has_newcomers(views, 0));
  CHECK(next_group(views, 0, true).step == Step::wait);
  // A member that was started again so: the others go on without it.
  auto left = all_in(group_of(3, {0, 1, 2}), 3);
  left[2].incarnation = 7;
  left[2].notes.formed = {};
  left[2].differs = "--seed: 1 on 'a' and 2 on 'c'";
  const NextGroup next = next_group(left, 0, true);
  CHECK(next.step == Step::host);
  CHECK(places(next.group) == Places{0, 1});
}

}  // namespace dpwa::collective
