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

TEST_CASE("of members whose last steps were made in different groups one state stays") {
  // The first had all of the exchange that the others repeated without it.
  const SyncPlan most =
      plan_sync({{42, member, 1}, {42, member, 2}, {41, member, 1}, {42, member, 2}});
  CHECK(most.source == 1);
  CHECK(most.made_in == 2);
  CHECK(most.behind == Flags{true, false, true, false});
  const SyncPlan first =
      plan_sync({{41, member, 3}, {41, member, 3}, {42, member, 1}, {42, member, 2}});
  CHECK(first.source == 2);
  CHECK(first.behind == Flags{true, true, false, true});
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
    const MemberState state{1234567890123, group_state, (1U << made_in_bits) - 1};
    CHECK(unpacked(packed(state)) == state);
    CHECK(unpacked(packed({0, group_state, 0})) == MemberState{0, group_state, 0});
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
