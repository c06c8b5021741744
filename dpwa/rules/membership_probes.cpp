// Whom Membership wants asked beside the pulls.

#include "dpwa/rules/membership.h"
#include "dpwa/rules/sample.h"

namespace dpwa {

std::optional<PeerId> Membership::to_probe(Random& random) const {
  Sample<PeerId> silent(1, random);
  Sample<PeerId> doubtful(1, random);
  for (PeerId place = 0; place < members_.size(); ++place) {
    const Member& member = members_[place];
    if (member.claim.name.empty() || !member.vouched_for()) continue;
    const MemberStatus status = member.status();
    const bool gone = status == MemberStatus::dead || (member.seed && status == MemberStatus::left);
    if (gone) silent.offer(place);
    if (runs(status) && member.failures > 0) doubtful.offer(place);
  }
  const auto& chosen = doubtful.values().empty() ? silent.values() : doubtful.values();
  return chosen.empty() ? std::nullopt : std::optional(chosen.front());
}

std::vector<PeerId> Membership::to_meet(std::size_t most, TimePoint now, Random& random) const {
  Sample<PeerId> chosen(most, random);
  Sample<PeerId> again(1, random);
  for (PeerId place = 0; place < members_.size(); ++place) {
    const Member& member = members_[place];
    const bool strange = !member.claim.name.empty() && !member.vouched_for();
    if (!strange || member.claim.addresses.empty() || member.meet_at > now) continue;
    if (member.meet_at != TimePoint::min()) {
      if (member.status() != MemberStatus::left) again.offer(place);
    } else if (runs(member.status())) {
      chosen.offer(place);
    }
  }
  std::vector<PeerId> places = chosen.values();
  places.insert(places.end(), again.values().begin(), again.values().end());
  return places;
}

}  // namespace dpwa
