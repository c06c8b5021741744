#include "dpwa/collective/group_members.h"

#include <algorithm>

#include "dpwa/config/config.h"

namespace dpwa::collective {

const GroupMembers::Member* GroupMembers::find(std::size_t place) const {
  const auto found = std::ranges::find(members, place, &Member::place);
  return found == members.end() ? nullptr : &*found;
}

bool GroupMembers::includes(const members::ProcessId& id) const {
  return std::ranges::find(members, id, &Member::id) != members.end();
}

std::optional<int> GroupMembers::rank_of(std::size_t place) const {
  const Member* member = find(place);
  return member == nullptr ? std::nullopt
                           : std::optional<int>(static_cast<int>(member - members.data()));
}

bool GroupMembers::are_in(const members::View& other) const {
  return std::ranges::all_of(members,
                             [&](const Member& each) { return other.member(each.id) != nullptr; });
}

bool GroupMembers::have_voters_of(const members::View& other) const {
  return std::ranges::all_of(
      other.members, [this](const auto& each) { return each.joining || includes(each.id); });
}

GroupMembers members_of(const members::View& view, bool admits, const Config& config) {
  GroupMembers found{view.number, admits, {}};
  for (std::size_t place = 0; place < config.nodes.size(); ++place) {
    const auto* const member = view.member(config.nodes[place].name);
    if (member != nullptr && (admits || !member->joining))
      found.members.push_back({place, member->id});
  }
  return found;
}

}  // namespace dpwa::collective
