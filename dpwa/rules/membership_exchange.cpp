// The part of Membership that concerns other nodes: the contents of a message to them, what is
// accepted from one, and which nodes are asked besides the pulls.

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "dpwa/rules/membership.h"
#include "dpwa/rules/sample.h"

namespace dpwa {
namespace {

// After this long without a request, news is sent outside of the pulls.
constexpr auto idle = std::chrono::seconds(2);

// At random, so not all of them differ: a few members are asked beside the pulls at a time.
constexpr int draws = 4;
constexpr std::size_t met_at_once = 8;

}  // namespace

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
  exchange.total = static_cast<std::uint32_t>(places_.size() + 1);
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
    const MemberClaim& claim = members_[place].claim;
    if (claim.name != to) exchange.claims.push_back(claim);
  }
}

void Membership::add_part(MemberExchange& exchange, std::uint32_t part) const {
  const std::size_t parts = (members_.size() + part_size - 1) / part_size;
  if (parts == 0) return;
  const std::size_t from = part % parts * part_size;
  const std::size_t to = std::min(members_.size(), from + part_size);
  exchange.claims.reserve(exchange.claims.size() + to - from);
  for (std::size_t place = from; place < to; ++place) {
    const Member& member = members_[place];
    const bool known = !member.claim.name.empty() && member.claim.incarnation != 0;
    if (known && member.vouched_for()) exchange.claims.push_back(member.claim);
  }
}

MemberExchange Membership::request(const std::string& to, TimePoint now) {
  requested_ = now;
  if (const auto place = find(to)) members_[*place].exchanged = now;
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

std::optional<PeerId> Membership::find_after(std::optional<PeerId> last,
                                             const std::string& name) const {
  const std::size_t next = last ? *last + std::size_t{1} : 0;
  if (next < members_.size() && members_[next].claim.name == name) return static_cast<PeerId>(next);
  return find(name);
}

void Membership::merge(const std::string& from, std::uint64_t incarnation,
                       const MemberExchange& exchange, TimePoint now) {
  bool first = true;
  std::optional<PeerId> place;
  for (const MemberClaim& claim : exchange.claims) {
    if (!std::exchange(first, false)) {
      place = find_after(place, claim.name);
      hear_claim(claim, place, from, now);
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

std::vector<MemberClaim> Membership::to_ask(TimePoint now, Random& random) const {
  std::set<PeerId> places;
  for (int draw = 0; draw < draws; ++draw) {
    if (const auto place = to_probe(random)) places.insert(*place);
  }
  if (places.empty() && requested_ + idle < now) {
    if (const auto place = any_alive(random)) places.insert(*place);
  }
  for (const PeerId place : to_meet(met_at_once, now, random)) places.insert(place);
  std::vector<MemberClaim> claims;
  for (const PeerId place : places) claims.push_back(members_[place].claim);
  return claims;
}

std::vector<MemberClaim> Membership::some_running(std::size_t most, Random& random) const {
  Sample<MemberClaim> some(most, random);
  for (const Member& member : members_) {
    const bool runs = member.claim.incarnation != 0 && member.status() == MemberStatus::alive;
    if (runs && member.vouched_for()) some.offer(member.claim);
  }
  return some.values();
}

std::optional<PeerId> Membership::to_probe(Random& random) const {
  Sample<PeerId> silent(1, random);
  Sample<PeerId> doubtful(1, random);
  for (PeerId place = 0; place < members_.size(); ++place) {
    const Member& member = members_[place];
    if (member.claim.name.empty() || !member.vouched_for()) continue;
    const MemberStatus status = member.status();
    const bool gone =
        status == MemberStatus::dead || (member.listed && status == MemberStatus::left);
    if (gone) silent.offer(place);
    if (runs(status) && member.failures > 0) doubtful.offer(place);
  }
  const auto& chosen = doubtful.values().empty() ? silent.values() : doubtful.values();
  return chosen.empty() ? std::nullopt : std::optional(chosen.front());
}

std::optional<PeerId> Membership::any_alive(Random& random) const {
  std::vector<PeerId> alive;
  for (PeerId place = 0; place < members_.size(); ++place) {
    const Member& member = members_[place];
    if (member.vouched_for() && member.status() == MemberStatus::alive) alive.push_back(place);
  }
  return alive.empty() ? std::nullopt : std::optional(alive[random.below(alive.size())]);
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

void Membership::leave() {
  self_.status = MemberStatus::left;
  self_told_ = 0;
}

Membership::Admission Membership::admission(const std::string& name) const {
  if (find(name)) return Admission::known;
  if (!options_.open) return Admission::closed;
  if (places_.size() < options_.max_members) return Admission::may_join;
  const bool room = std::ranges::any_of(members_, [](const Member& member) {
    return !member.listed && (!runs(member.status()) || member.heard == TimePoint::min());
  });
  return room ? Admission::may_join : Admission::full;
}

}  // namespace dpwa
