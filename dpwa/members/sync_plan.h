#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace dpwa::members {

// How a node comes into a group.
enum class GroupState {
  member,  // with the state that all members of the last group have at the same clock
  apart,   // has trained without a group since, by gossip averaging
  none,    // from a checkpoint or from nothing
};

struct MemberState {
  std::int64_t clock = 0;
  GroupState group_state = GroupState::none;
  // Of a member: which group made the last step of its clock, as a hash. One that had all of the
  // last exchange and heard late that the others had gone on has made a step that they repeated.
  std::uint32_t made_in = 0;

  friend bool operator==(const MemberState&, const MemberState&) = default;
};
inline constexpr std::uint32_t made_in_bits = 20;

// The actions by which the members of a new group get one state; the same on all of them.
struct SyncPlan {
  int source = 0;              // the rank whose state the others take over
  std::int64_t clock = 0;      // of that state
  std::uint32_t made_in = 0;   // and the group that made its last step
  std::vector<bool> behind;    // by rank: takes over the state of the source
  std::vector<bool> averaged;  // by rank: its weights count in the mean; all false: no mean
  bool newcomers = false;      // not all come from the same group
  bool fresh = false;          // no node comes from a group: the start of a run

  bool any_behind() const;
  bool averages() const;
  // Whether some take over the state of the source's optimizer in the first step. At the start of a
  // run also from checkpoints with the same clock: their nodes may have trained apart.
  bool hands_over_optimizer() const { return any_behind() || is_resumed(); }
  bool takes_optimizer(int rank) const;

 private:
  bool is_resumed() const { return fresh && clock > 0; }
};

// Makes the plan from the reports of all ranks, by rank. Members of the last group take precedence
// over those that trained apart, and these over the others. Among equals the source is the one that
// is furthest; of those whose last step was made in different groups, one of the most; and the
// first of these. When the best ones trained apart, all take the mean of their
// weights, and the rest of the state from the source. Pure.
SyncPlan plan_sync(const std::vector<MemberState>& members);

// As one number, for agree(): a clock below 2^41.
std::int64_t packed(const MemberState& state);
MemberState unpacked(std::int64_t number);

// The rank whose optimizer the others compare with and those that are behind take over: that of the
// source, unless it has none any more, because it has run out of data. Then the first one of a
// member that is not behind, else the first one. `optimizers`: by rank; 0: it has none. Pure.
std::optional<int> owner_of_optimizer(const std::vector<std::int64_t>& optimizers, int source,
                                      const std::vector<bool>& behind);

}  // namespace dpwa::members
