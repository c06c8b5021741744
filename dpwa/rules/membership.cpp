#include "dpwa/rules/membership.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace dpwa {
namespace {

std::string place_of(const std::string& address, std::uint16_t port) {
  return address + " " + std::to_string(port);
}

bool same_address(const MemberClaim& a, const MemberClaim& b) {
  return a.port == b.port && a.addresses == b.addresses;
}

void take_address(MemberClaim& claim, const MemberClaim& from) {
  claim.addresses = from.addresses;
  claim.port = from.port;
}

void add_addresses(std::unordered_map<std::string, std::string>& places, const MemberClaim& of) {
  for (const std::string& address : of.addresses)
    places.emplace(place_of(address, of.port), of.name);
}

}  // namespace

Membership::Membership(MemberClaim self, std::vector<MemberClaim> listed, MembershipOptions options)
    : self_(std::move(self)), options_(options) {
  for (MemberClaim& claim : listed) {
    DPWA_INVARIANT(claim.status == MemberStatus::alive, "all nodes of the file begin alive",
                   claim.name, claim.status);
    places_.emplace(claim.name, static_cast<PeerId>(members_.size()));
    Member& member = members_.emplace_back();
    member.claim = std::move(claim);
    member.listed = true;
    count(member, 1);
    add_addresses(listed_addresses_, member.claim);
  }
  add_addresses(listed_addresses_, self_);
}

void Membership::note_listed_addresses(const MemberClaim& claim) {
  std::erase_if(listed_addresses_, [&](const auto& entry) { return entry.second == claim.name; });
  add_addresses(listed_addresses_, claim);
}

// Two nodes cannot listen at one address; such a claim would make others dial a known node under
// new names.
bool Membership::at_address_of_listed(const MemberClaim& claim) const {
  return std::ranges::any_of(claim.addresses, [&](const std::string& address) {
    const auto found = listed_addresses_.find(place_of(address, claim.port));
    return found != listed_addresses_.end() && found->second != claim.name;
  });
}

std::optional<PeerId> Membership::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

const Member* Membership::member(const std::string& name) const {
  const auto place = find(name);
  return place ? &members_[*place] : nullptr;
}

// Updates the digest. A node that was never heard of is in no node's digest.
void Membership::count(const Member& member, int by) {
  if (member.claim.incarnation == 0 || !runs(member.claim.status) || !member.vouched_for()) return;
  digest_ ^= digest_of(member.claim);
  DPWA_INVARIANT(by > 0 || running_ > 0, "a member that ends running was counted", running_,
                 member.claim.name);
  running_ = by > 0 ? running_ + 1 : running_ - 1;
}

// A process listens where it answers; it is believed to have moved only once it no longer answers
// there.
bool Membership::may_move(const Member& member, const MemberClaim& told) {
  return !same_address(told, member.claim) && !member.listed && !member.answers;
}

void Membership::announce(const MemberClaim& claim, TimePoint now) {
  auto place = find(claim.name);
  if (!place) {
    if (claim.name == self_.name || !options_.open || claim.status == MemberStatus::left) return;
    if (at_address_of_listed(claim)) return;
    place = place_for(claim.name, true);
    if (!place) return;
  }
  MemberClaim told = claim;
  if (told.status != MemberStatus::left) told.status = MemberStatus::alive;
  Member& member = members_[*place];
  const MemberStatus before = member.status();
  const bool another = told.incarnation != member.claim.incarnation;
  const bool moved = !another && may_move(member, told);
  // A refutation far ahead of the process's own was made up.
  const bool lied_about =
      !another && member.claim.refutation > told.refutation + max_refutation_jump;
  const bool news = another || lied_about || supersedes(told, member.claim);
  member.failures = 0;
  member.heard = now;
  if (!another && !moved) take_address(told, member.claim);
  if (moved && !news) {
    // Its standing is no older for that.
    count(member, -1);
    take_address(member.claim, told);
    member.reached = member.answers = false;
    count(member, 1);
    member.meet_at = TimePoint::min();
    news_.remove(*place);
    note_change(*place);
  }
  if (another) member.replaced = member.claim.incarnation;
  if (news) hold(*place, told, now);
  member.told = true;
  member.known_refutation = told.refutation;
  member.known = now;
  if (member.status() != before) note_change(*place);
}

std::int64_t Membership::most_refutations(const Member& member, TimePoint now) {
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(now - member.known);
  return std::int64_t{member.known_refutation} + max_refutation_jump + since.count();
}

void Membership::hear_claim(const MemberClaim& claim, std::optional<PeerId> known,
                            const std::string& from, TimePoint now) {
  if (claim.incarnation == 0) return;
  if (claim.name == self_.name) return hear_of_self(claim, now);
  if (!known) {
    // Forgotten members stay forgotten: the node learns only of running ones.
    if (!options_.open || !runs(claim.status) || at_address_of_listed(claim)) return;
    const auto unmet = unmet_.find(from);
    if (unmet != unmet_.end() && unmet->second >= max_unmet_of_one) return;
    const auto place = place_for(claim.name, false);
    if (!place) return;
    hold(*place, claim, now);
    members_[*place].told_by = from;
    ++unmet_[from];
    return;
  }
  const Member& member = members_[*known];
  if (!supersedes(claim, member.claim)) return;
  const bool same_process = claim.incarnation == member.claim.incarnation;
  const bool heard_lately = member.status() == MemberStatus::alive &&
                            member.heard != TimePoint::min() &&
                            now - member.heard < options_.suspect;
  // Another process under the name of one that has just spoken to this node: it will show itself.
  if (!same_process && member.claim.incarnation != 0 && heard_lately) return;
  // The process before the present one, which began under an earlier clock: some still hold it.
  if (claim.incarnation == member.replaced) return;
  // That one is gone says nothing of a process that has spoken itself, under an earlier clock, and
  // still answers.
  const bool answers = member.told && member.failures == 0;
  if (!same_process && answers && claim.status != MemberStatus::alive) return;
  if (!member.listed && at_address_of_listed(claim)) return;
  if (same_process && claim.refutation > most_refutations(member, now)) return;
  MemberClaim believed = claim;
  if (same_process && (member.told || member.reached)) take_address(believed, member.claim);
  if (claim.status == MemberStatus::dead && heard_lately) {
    // Time for it to refute that.
    believed.status = MemberStatus::suspect;
    if (!supersedes(believed, member.claim)) return;
  }
  hold(*known, believed, now);
}

void Membership::heard(const std::string& name, std::uint64_t incarnation, TimePoint now) {
  const auto place = find(name);
  if (!place) return;
  Member& member = members_[*place];
  const MemberStatus before = member.status();
  member.failures = 0;
  member.heard = now;
  if (incarnation != 0 && incarnation != member.claim.incarnation) {
    member.replaced = member.claim.incarnation;
    MemberClaim claim = member.claim;
    claim.incarnation = incarnation;
    claim.refutation = 0;
    claim.status = MemberStatus::alive;
    member.refutations = 0;
    hold(*place, claim, now);
  }
  if (member.status() != before) note_change(*place);
}

void Membership::reached(const std::string& name, std::uint64_t incarnation, TimePoint now) {
  heard(name, incarnation, now);
  const auto place = find(name);
  if (!place) return;
  Member& member = members_[*place];
  member.answers = member.met = true;
  if (member.reached) return;
  count(member, -1);
  member.reached = true;
  count(member, 1);
  end_hearsay(member);
  if (member.claim.incarnation != 0) news_.add(*place);
  note_change(*place);
}

void Membership::end_hearsay(Member& member) {
  const std::string from = std::exchange(member.told_by, {});
  if (from.empty()) return;
  const auto unmet = unmet_.find(from);
  DPWA_INVARIANT(unmet != unmet_.end() && unmet->second > 0,
                 "a member that others told of counts among those", member.claim.name, from);
  if (--unmet->second == 0) unmet_.erase(unmet);
}

void Membership::failed(const std::string& name, TimePoint now) {
  const auto place = find(name);
  if (!place) return;
  Member& member = members_[*place];
  member.answers = false;
  // Each wrong suspicion doubles the failures that the next one takes.
  const unsigned needed =
      member.vouched_for() ? options_.suspect_after << std::min(member.refutations, 4U) : 1;
  ++member.failures;
  if (!member.vouched_for()) member.meet_at = now + meet_pause.nominal(member.failures);
  if (member.failures < needed) return;
  const MemberStatus before = member.status();
  member.heard = TimePoint::min();
  if (member.claim.status == MemberStatus::alive) {
    MemberClaim claim = member.claim;
    claim.status = MemberStatus::suspect;
    hold(*place, claim, now);
  } else if (member.status() != before) {
    note_change(*place);
  }
}

Duration Membership::suspicion() const {
  const double factor = std::max(1.0, std::log10(static_cast<double>(running_ + 1)));
  return std::chrono::duration_cast<Duration>(options_.suspect * factor);
}

void Membership::tick(TimePoint now) {
  for (PeerId place = 0; place < members_.size(); ++place) {
    const Member& member = members_[place];
    if (member.claim.name.empty() || member.heard > member.changed) continue;
    if (member.claim.status == MemberStatus::alive) continue;
    const Duration since = now - member.changed;
    if (member.claim.status == MemberStatus::suspect && since >= suspicion()) {
      MemberClaim claim = member.claim;
      claim.status = MemberStatus::dead;
      hold(place, claim, now);
    } else if (!member.listed && !runs(member.claim.status) &&
               since >= (member.met ? options_.forget : std::min(options_.forget, forget_unmet))) {
      forget(place);
    }
  }
}

void Membership::hold(PeerId place, const MemberClaim& claim, TimePoint now) {
  Member& member = members_[place];
  const MemberStatus before = member.status();
  const bool refuted = member.claim.status != MemberStatus::alive &&
                       claim.status == MemberStatus::alive &&
                       claim.incarnation == member.claim.incarnation;
  if (refuted && member.failures > 0) ++member.refutations;
  if (claim.status == MemberStatus::alive) member.failures = 0;
  count(member, -1);
  MemberClaim held = claim;
  const bool keeps_address = member.listed && !member.claim.addresses.empty();
  if (keeps_address || held.addresses.empty()) take_address(held, member.claim);
  const bool moved = !same_address(held, member.claim);
  if (moved) member.reached = member.answers = false;
  if (moved || held.incarnation != member.claim.incarnation) member.meet_at = TimePoint::min();
  if (held.incarnation != member.claim.incarnation) {
    member.told = false;
    member.known_refutation = held.refutation;
    member.known = now;
  }
  member.claim = std::move(held);
  member.changed = now;
  count(member, 1);
  if (member.vouched_for() && claim.incarnation != 0) {
    news_.add(place);
  } else {
    news_.remove(place);
  }
  if (moved || member.status() != before) note_change(place);
}

std::optional<PeerId> Membership::place_for(const std::string& name, bool by_itself) {
  std::optional<PeerId> place;
  const auto older = [this](PeerId a, std::optional<PeerId> b) {
    return !b || members_[a].changed < members_[*b].changed;
  };
  if (places_.size() < members_.size()) {
    const auto is_free = [](const Member& member) { return member.claim.name.empty(); };
    place = static_cast<PeerId>(std::ranges::find_if(members_, is_free) - members_.begin());
  } else if (members_.size() < options_.max_members) {
    place = static_cast<PeerId>(members_.size());
    members_.emplace_back();
  } else {
    std::optional<PeerId> unverified;
    for (PeerId candidate = 0; candidate < members_.size(); ++candidate) {
      const Member& member = members_[candidate];
      if (member.listed) continue;
      if (!runs(member.status()) && older(candidate, place)) place = candidate;
      if (member.heard == TimePoint::min() && older(candidate, unverified)) unverified = candidate;
    }
    if (!place && by_itself) place = unverified;
    if (!place) return std::nullopt;
    forget(*place);
  }
  const bool is_new = places_.emplace(name, *place).second;
  DPWA_INVARIANT(is_new, "a member has one place", name, *place);
  members_[*place].claim.name = name;
  note_change(*place);
  return place;
}

void Membership::forget(PeerId place) {
  Member& member = members_[place];
  count(member, -1);
  end_hearsay(member);
  news_.remove(place);
  places_.erase(member.claim.name);
  member = {};
  note_change(place);
}

void Membership::make_listed(PeerId place) {
  Member& member = members_[place];
  count(member, -1);
  const bool is_new = !member.vouched_for();
  member.listed = true;
  count(member, 1);
  end_hearsay(member);
  if (is_new && member.claim.incarnation != 0) news_.add(place);
}

void Membership::keep(const std::string& name) {
  const auto place = find(name);
  if (!place) return;
  make_listed(*place);
  note_listed_addresses(members_[*place].claim);
  note_change(*place);
}

void Membership::list(const MemberClaim& claim, TimePoint now) {
  auto place = find(claim.name);
  if (!place) {
    place = place_for(claim.name, true);
    if (!place) return;
    members_[*place].changed = now;
  }
  make_listed(*place);
  Member& member = members_[*place];
  take_address(member.claim, claim);
  note_listed_addresses(claim);
  note_change(*place);
}

void Membership::unlist(const std::string& name) {
  const auto place = find(name);
  if (!place) return;
  Member& member = members_[*place];
  count(member, -1);
  member.listed = false;
  count(member, 1);
  if (!member.vouched_for()) news_.remove(*place);
  note_change(*place);
  std::erase_if(listed_addresses_, [&](const auto& entry) { return entry.second == name; });
  if (!options_.open) forget(*place);
}

void Membership::note_change(PeerId place) {
  DPWA_INVARIANT(place < members_.size(), "a change is of a place of the table", place,
                 members_.size());
  ++version_;
  changes_.push_back(place);
  if (changes_.size() > max_changes) changes_.pop_front();
}

std::vector<PeerId> Membership::changed_since(std::uint64_t version) const {
  DPWA_INVARIANT(version <= version_, "a version of the table is one that it has had", version,
                 version_);
  std::vector<PeerId> places;
  if (version_ - version > changes_.size()) {
    places.resize(members_.size());
    std::iota(places.begin(), places.end(), PeerId{0});
    return places;
  }
  places.assign(changes_.end() - static_cast<std::ptrdiff_t>(version_ - version), changes_.end());
  std::ranges::sort(places);
  places.erase(std::ranges::unique(places).begin(), places.end());
  return places;
}

}  // namespace dpwa
