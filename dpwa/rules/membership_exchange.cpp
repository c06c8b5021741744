// The part of Membership that concerns other nodes: the contents of a message to them, what is
// accepted from one, and which nodes are asked besides the pulls.

#include <algorithm>
#include <utility>

#include "dpwa/rules/membership.h"
#include "dpwa/rules/sample.h"

namespace dpwa {

bool Membership::exchange_is_due(const std::string& to, TimePoint now) const {
  const auto place = find(to);
  if (!place) return true;
  const Member& member = members_[*place];
  const bool quiet =
      member.exchanged != TimePoint::min() && now - member.exchanged < options_.exchange;
  return !quiet || !news_.empty() || self_told_ < MemberNews::limit(running_ + 1) ||
         (member.claim.incarnation != 0 && member.claim.status != MemberStatus::alive);
}

MemberExchange Membership::begin(const std::string& to) {
  MemberExchange exchange;
  exchange.total = static_cast<std::uint32_t>(members_.named() + 1);
  exchange.digest = digest();
  exchange.claims.push_back(self_);
  if (self_told_ < MemberNews::limit(running_ + 1)) ++self_told_;
  // The claim about the receiver: only the receiver can refute it.
  const auto place = find(to);
  if (place && members_[*place].claim.incarnation != 0 &&
      members_[*place].claim.status != MemberStatus::alive) {
    exchange.claims.push_back(members_[*place].claim);
  }
  return exchange;
}

void Membership::add_news(MemberExchange& exchange, const std::string& to) {
  for (const std::size_t place : news_.take(max_news, MemberNews::limit(running_ + 1))) {
    const MemberClaim& claim = members_[static_cast<PeerId>(place)].claim;
    if (claim.name != to) exchange.claims.push_back(claim);
  }
}

void Membership::add_part(MemberExchange& exchange, std::uint32_t part) const {
  const std::size_t parts = (members_.size() + part_size - 1) / part_size;
  if (parts == 0) return;
  const std::size_t from = part % parts * part_size;
  const std::size_t to = std::min(members_.size(), from + part_size);
  for (std::size_t place = from; place < to; ++place) {
    const Member& member = members_[static_cast<PeerId>(place)];
    const bool known = !member.claim.name.empty() && member.claim.incarnation != 0;
    if (known && member.vouched_for()) exchange.claims.push_back(member.claim);
  }
}

MemberExchange Membership::request(const std::string& to, TimePoint now) {
  if (const auto place = find(to)) members_.edit(*place).exchanged = now;
  MemberExchange exchange = begin(to);
  exchange.part = part_;
  add_news(exchange, to);
  if (differed_) add_part(exchange, part_);
  ++part_;
  return exchange;
}

MemberExchange Membership::answer(const std::string& to, const MemberExchange& request, TimePoint) {
  MemberExchange exchange = begin(to);
  add_news(exchange, to);
  if (request.digest != digest()) add_part(exchange, request.part);
  return exchange;
}

void Membership::merge(const std::string& from, std::uint64_t incarnation,
                       const MemberExchange& exchange, TimePoint now) {
  bool first = true;
  for (const MemberClaim& claim : exchange.claims) {
    if (!std::exchange(first, false)) {
      hear_claim(claim, from, now);
    } else if (claim.name == from && claim.incarnation == incarnation) {
      announce(claim, now);
    }
  }
}

bool Membership::merge_answer(const std::string& from, std::uint64_t incarnation,
                              const MemberExchange& exchange, TimePoint now) {
  merge(from, incarnation, exchange, now);
  differed_ = exchange.digest != digest();
  return differed_ && std::size_t{part_} * part_size < exchange.total;
}

std::optional<PeerId> Membership::to_probe(Random& random) const {
  Sample<PeerId> silent(1, random);
  Sample<PeerId> doubtful(1, random);
  members_.for_each_own([&](PeerId place, const Member& member) {
    if (member.claim.name.empty() || !member.vouched_for()) return;
    const MemberStatus status = member.status();
    const bool gone = status == MemberStatus::dead || (member.seed && status == MemberStatus::left);
    if (gone) silent.offer(place);
    if (runs(status) && member.failures > 0) doubtful.offer(place);
  });
  const auto& chosen = doubtful.values().empty() ? silent.values() : doubtful.values();
  return chosen.empty() ? std::nullopt : std::optional(chosen.front());
}

std::optional<PeerId> Membership::any_alive(Random& random) const {
  std::vector<PeerId> alive;
  members_.for_each_own([&](PeerId place, const Member& member) {
    if (member.vouched_for() && member.status() == MemberStatus::alive) alive.push_back(place);
  });
  const std::vector<PeerId> own = members_.own_places();
  const std::size_t others = members_.size() - own.size();
  if (others + alive.size() == 0) return std::nullopt;
  const std::size_t index = random.below(others + alive.size());
  return index < others ? nth_absent(own, index) : alive[index - others];
}

std::vector<PeerId> Membership::to_meet(std::size_t most, TimePoint now, Random& random) const {
  Sample<PeerId> chosen(most, random);
  Sample<PeerId> again(1, random);
  members_.for_each_own([&](PeerId place, const Member& member) {
    const bool strange = !member.claim.name.empty() && !member.vouched_for();
    if (!strange || member.claim.addresses.empty() || member.meet_at > now) return;
    if (member.meet_at != TimePoint::min()) {
      if (member.status() != MemberStatus::left) again.offer(place);
    } else if (runs(member.status())) {
      chosen.offer(place);
    }
  });
  std::vector<PeerId> places = chosen.values();
  places.insert(places.end(), again.values().begin(), again.values().end());
  return places;
}

// A process that is reported gone raises its refutation above the report, but not so often that a
// node that repeats the report without pause could use up all refutations.
void Membership::hear_of_self(const MemberClaim& claim, TimePoint now) {
  const bool refutes = claim.incarnation == self_.incarnation &&
                       claim.status != MemberStatus::alive &&
                       claim.refutation >= self_.refutation && self_.status != MemberStatus::left;
  if (!refutes) return;
  const bool lately = refuted_ != TimePoint::min() && now - refuted_ < refutation_pause;
  if (lately || self_.refutation >= max_refutation - max_refutation_jump) return;
  refuted_ = now;
  self_.refutation = 1 + std::min(claim.refutation, self_.refutation + max_refutation_jump);
  self_told_ = 0;
}

Membership::Admission Membership::admission(const std::string& name) const {
  if (find(name)) return Admission::known;
  if (!options_.open) return Admission::closed;
  if (members_.named() < options_.max_members) return Admission::may_join;
  bool room = false;
  members_.for_each_own([&](PeerId, const Member& member) {
    room |= !member.seed && (!runs(member.status()) || member.heard == TimePoint::min());
  });
  return room ? Admission::may_join : Admission::full;
}

}  // namespace dpwa
