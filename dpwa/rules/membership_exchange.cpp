// What of Membership concerns the messages: what there is to send, and what of one is taken in.

#include <algorithm>
#include <utility>

#include "dpwa/rules/membership.h"

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
  exchange.total = static_cast<std::uint32_t>(places_.size() + 1);
  exchange.digest = digest();
  exchange.claims.push_back(self_);
  if (self_told_ < MemberNews::limit(running_ + 1)) ++self_told_;
  // What is said of the one that this goes to: it is the one to refute it.
  const auto place = find(to);
  if (place && members_[*place].claim.incarnation != 0 &&
      members_[*place].claim.status != MemberStatus::alive) {
    exchange.claims.push_back(members_[*place].claim);
  }
  return exchange;
}

void Membership::add_news(MemberExchange& exchange, const std::string& to) {
  for (const std::size_t place : news_.take(max_news, MemberNews::limit(running_ + 1))) {
    if (members_[place].claim.name != to) exchange.claims.push_back(members_[place].claim);
  }
}

void Membership::add_part(MemberExchange& exchange, std::uint32_t part) const {
  const std::size_t parts = (members_.size() + part_size - 1) / part_size;
  if (parts == 0) return;
  const std::size_t from = part % parts * part_size;
  const std::size_t to = std::min(members_.size(), from + part_size);
  for (std::size_t place = from; place < to; ++place) {
    const MemberClaim& claim = members_[place].claim;
    if (!claim.name.empty() && claim.incarnation != 0) exchange.claims.push_back(claim);
  }
}

MemberExchange Membership::request(const std::string& to, TimePoint now) {
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

void Membership::merge(const std::string& from, std::uint64_t incarnation,
                       const MemberExchange& exchange, TimePoint now) {
  bool first = true;
  for (const MemberClaim& claim : exchange.claims) {
    if (!std::exchange(first, false)) {
      hear_claim(claim, now);
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

}  // namespace dpwa
