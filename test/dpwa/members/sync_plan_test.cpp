#include "dpwa/members/sync_plan.h"

#include <doctest/doctest.h>

#include <vector>

namespace dpwa::members {

using enum GroupState;
using Flags = std::vector<bool>;

TEST_CASE("at the start of a run all take over from the one that has come furthest") {
  const SyncPlan plan = plan_sync({{3, none}, {7, none}, {7, none}});
  CHECK(plan.source == 1);
  CHECK(plan.clock == 7);
  CHECK(plan.behind == Flags{true, false, false});
  CHECK_FALSE(plan.averages());
  CHECK(plan.newcomers);
  CHECK(plan.fresh);
}

TEST_CASE("members of a group that finished a step hand its result to those that had not") {
  const SyncPlan plan = plan_sync({{41, member}, {42, member}, {42, member}});
  CHECK(plan.source == 1);
  CHECK(plan.behind == Flags{true, false, false});
  CHECK_FALSE(plan.newcomers);
  CHECK_FALSE(plan.fresh);
  CHECK_FALSE(plan_sync({{42, member}, {42, member}}).any_behind());
}

TEST_CASE("a newcomer takes over from the group, however far its checkpoint was") {
  const SyncPlan plan = plan_sync({{900, none}, {42, member}, {50, apart}});
  CHECK(plan.source == 1);
  CHECK(plan.clock == 42);
  CHECK(plan.behind == Flags{true, false, true});
  CHECK(plan.newcomers);
}

TEST_CASE("those that trained apart take the mean of their weights, and newcomers take it too") {
  const SyncPlan plan = plan_sync({{50, apart}, {900, none}, {52, apart}});
  CHECK(plan.source == 2);
  CHECK(plan.averaged == Flags{true, false, true});
  CHECK(plan.behind == Flags{true, true, false});
}

TEST_CASE("what a rank says of itself travels as one number") {
  for (const GroupState group_state : {member, apart, none}) {
    const MemberState state = unpacked(packed({123456789, group_state}));
    CHECK(state.clock == 123456789);
    CHECK(state.group_state == group_state);
  }
}

TEST_CASE("at the start of a resumed run all but the source take over the optimizer's state") {
  const SyncPlan resumed = plan_sync({{7, none}, {7, none}});
  CHECK(resumed.hands_over_optimizer());
  CHECK_FALSE(resumed.takes_optimizer(0));
  CHECK(resumed.takes_optimizer(1));
  CHECK_FALSE(plan_sync({{0, none}, {0, none}}).hands_over_optimizer());
}

}  // namespace dpwa::members
