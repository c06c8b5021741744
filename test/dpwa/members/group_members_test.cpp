#include "dpwa/members/group_members.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace dpwa::members {
namespace {

const std::vector<std::string> names{"a", "b", "c"};
const ProcessId a{"a", 2, 1};
const ProcessId b{"b", 3, 1};
const ProcessId c{"c", 1, 1};

// "c" is first; "b" joins.
View with_joining() {
  View view{.run = 1, .number = 4, .members = {{c}, {a}}};
  view.members.push_back({b, /*joining=*/true});
  return view;
}

}  // namespace

TEST_CASE("a group has the voters of a view, or all, in the order of the file") {
  View view = with_joining();
  const GroupMembers voters = members_of(view, /*admits=*/false, names);
  CHECK(voters.members == std::vector<GroupMembers::Member>{{0, a}, {2, c}});
  CHECK(voters.rank_of(2) == 1);
  CHECK_FALSE(voters.rank_of(1));
  const GroupMembers all = members_of(view, /*admits=*/true, names);
  CHECK(all.members.size() == 3);
  CHECK(all.number() == voters.number() + 1);
  CHECK(voters.have_voters_of(view));
  view.members.back().joining = false;
  CHECK_FALSE(voters.have_voters_of(view));
  CHECK(all.have_voters_of(view));
  view.members.erase(view.members.begin());
  CHECK_FALSE(all.are_in(view));
}

TEST_CASE("whoever has no group needs that of the voters, whoever has one a larger one") {
  const View view = with_joining();
  const GroupMembers none;
  const GroupMembers voters = members_of(view, /*admits=*/false, names);
  const GroupMembers all = members_of(view, /*admits=*/true, names);
  CHECK(wanted_group(view, a, names, {.seeks = true, .current = none}) == voters);
  CHECK(wanted_group(view, a, names, {.seeks = false, .current = voters}) == all);
  CHECK_FALSE(wanted_group(view, a, names, {.seeks = false, .current = all}));
  // A voter that is in no group needs that of the voters, and so the others grow by it first.
  const GroupMembers first{3, false, {{2, c}}};
  CHECK(wanted_group(view, c, names, {.seeks = false, .current = first}) == voters);
  // One that joins comes to the group of all, if it is in the view at all.
  CHECK(wanted_group(view, b, names, {.seeks = true, .current = none}) == all);
  CHECK_FALSE(wanted_group(view, {"d", 1, 1}, names, {.seeks = true, .current = none}));
  // A group of all names alone.
  CHECK(wanted_group(view, a, names, {.seeks = true, .current = none, .needs_all = true}) == all);
  CHECK_FALSE(wanted_group(view, a, {"a", "b", "c", "d"},
                           {.seeks = true, .current = none, .needs_all = true}));
}

TEST_CASE("a group waits for nobody that has ended, has been started again, or is lost") {
  const GroupMembers all = members_of(with_joining(), /*admits=*/true, names);
  std::map<std::string, Peer> peers{{"b", {}}, {"c", {}}};
  peers["b"].id = b;
  CHECK(gone_member(all, peers).empty());
  peers["b"].refusals = 2;
  CHECK(gone_member(all, peers) == "'b' is no longer running");
  peers["b"] = {};
  peers["b"].id = ProcessId{"b", 4, 1};
  CHECK(gone_member(all, peers) == "'b' was started again");
  peers["b"].id = b;
  peers["c"].lost = "has not answered for 3 s";
  CHECK(gone_member(all, peers) == "'c' has not answered for 3 s");
}

TEST_CASE(
    "a step that has ended well counts in the view of its group, or where its results go on") {
  View view = with_joining();
  const GroupMembers voters = members_of(view, /*admits=*/false, names);
  CHECK(step_counts(voters, view, a) == StepCounts::in_a_view);
  view.members.back().joining = false;  // one that has no result votes
  CHECK(step_counts(voters, view, a) == StepCounts::yes);
  view.members.erase(view.members.begin() + 1);
  CHECK(step_counts(voters, view, a) == StepCounts::no);
}

}  // namespace dpwa::members
