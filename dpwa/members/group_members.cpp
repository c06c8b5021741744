#include "dpwa/members/group_members.h"

#include <algorithm>
#include <utility>

namespace dpwa::members {

const GroupMembers::Member* GroupMembers::find(std::size_t place) const {
  const auto found = std::ranges::find(members, place, &Member::place);
  return found == members.end() ? nullptr : &*found;
}

bool GroupMembers::includes(const ProcessId& id) const {
  return std::ranges::find(members, id, &Member::id) != members.end();
}

std::optional<int> GroupMembers::rank_of(std::size_t place) const {
  const Member* member = find(place);
  return member == nullptr ? std::nullopt
                           : std::optional<int>(static_cast<int>(member - members.data()));
}

bool GroupMembers::are_in(const View& other) const {
  return std::ranges::all_of(members,
                             [&](const Member& each) { return other.member(each.id) != nullptr; });
}

bool GroupMembers::have_voters_of(const View& other) const {
  return std::ranges::all_of(
      other.members, [this](const auto& each) { return each.joining || includes(each.id); });
}

std::optional<int> GroupMembers::rank_outside(const View& other) const {
  const auto found = std::ranges::find_if(
      members, [&](const Member& each) { return other.member(each.id) == nullptr; });
  return found == members.end() ? std::nullopt
                                : std::optional(static_cast<int>(found - members.begin()));
}

GroupMembers members_of(const View& view, bool admits, const std::vector<std::string>& names) {
  GroupMembers found{view.number, admits, {}};
  for (std::size_t place = 0; place < names.size(); ++place) {
    const auto* const member = view.member(names[place]);
    if (member != nullptr && (admits || !member->joining))
      found.members.push_back({place, member->id});
  }
  return found;
}

std::optional<GroupMembers> wanted_group(const View& view, const ProcessId& self,
                                         const std::vector<std::string>& names,
                                         const GroupSearch& search) {
  if (view.member(self) == nullptr) return std::nullopt;
  if (search.needs_all && (!search.seeks || view.members.size() < names.size()))
    return std::nullopt;
  const bool joins = !view.votes(self);
  // One that votes and is not in the current group has none, and needs that of the voters.
  const bool admits_joining = !search.seeks && search.current.have_voters_of(view);
  auto wanted = members_of(view, search.needs_all || joins || admits_joining, names);
  const bool grows =
      search.current.are_in(view) && wanted.members.size() > search.current.members.size();
  return search.seeks || grows ? std::optional(std::move(wanted)) : std::nullopt;
}

std::string gone_member(const GroupMembers& forming, const std::map<std::string, Peer>& peers) {
  for (const GroupMembers::Member& member : forming.members) {
    const auto peer = peers.find(member.id.name);
    const std::string why = peer == peers.end() ? "" : peer->second.why_gone(member.id);
    if (!why.empty()) return "'" + member.id.name + "' " + why;
  }
  return {};
}

bool is_left_behind(const GroupMembers& formed, const View& view) {
  return !formed.are_in(view) || !formed.have_voters_of(view);
}

StepCounts step_counts(const GroupMembers& group, const View& view, const ProcessId& self) {
  if (view.member(self) == nullptr) return StepCounts::no;
  return group.have_voters_of(view) ? StepCounts::in_a_view : StepCounts::yes;
}

}  // namespace dpwa::members
