#include "dpwa/rules/member_table.h"

#include <algorithm>
#include <utility>

namespace dpwa {

std::string place_of(const std::string& address, std::uint16_t port) {
  return address + " " + std::to_string(port);
}

Seeds::Seeds(std::vector<MemberClaim> claims, TimePoint known) {
  std::vector<std::string> names;
  for (MemberClaim& claim : claims) {
    DPWA_INVARIANT(claim.status == MemberStatus::alive, "all nodes of the file begin alive",
                   claim.name, claim.status);
    const auto rank = static_cast<std::uint32_t>(members_.size());
    for (const std::string& address : claim.addresses)
      ranks_.emplace(place_of(address, claim.port), rank);
    names.push_back(claim.name);
    Member& member = members_.emplace_back();
    member.seed = true;
    member.claim = std::move(claim);
    if (member.claim.incarnation == 0) continue;
    member.changed = member.known = known;
    member.known_refutation = member.claim.refutation;
    digest_ ^= digest_of(member.claim);
    ++running_;
  }
  names_ = std::make_shared<const ClusterNames>(std::move(names));
}

std::optional<std::size_t> Seeds::find_address(const std::string& address,
                                               std::uint16_t port) const {
  const auto found = ranks_.find(place_of(address, port));
  return found == ranks_.end() ? std::nullopt : std::optional<std::size_t>(found->second);
}

MemberTable::MemberTable(std::shared_ptr<const Seeds> seeds)
    : seeds_(std::move(seeds)),
      own_rank_(seeds_->size()),
      size_(seeds_->size()),
      named_(seeds_->size()) {}

MemberTable::MemberTable(std::shared_ptr<const Seeds> seeds, std::size_t own_rank)
    : seeds_(std::move(seeds)), own_rank_(own_rank), size_(seeds_->size()) {
  DPWA_INVARIANT(own_rank < size_, "the own node is one of the file", own_rank, size_);
  named_ = --size_;
}

const Member& MemberTable::shared_at(PeerId place) const {
  const std::size_t rank = rank_of(place);
  DPWA_INVARIANT(rank < seeds_->size(), "a place is one of the table", place, size_);
  return seeds_->at(rank);
}

const Member& MemberTable::operator[](PeerId place) const {
  const Member* own = own_.find(place);
  return own != nullptr ? *own : shared_at(place);
}

Member& MemberTable::edit(PeerId place) {
  if (Member* own = own_.find(place)) return *own;
  return own_.at_or(place, shared_at(place));
}

std::optional<PeerId> MemberTable::place_of_rank(std::size_t rank) const {
  if (rank == own_rank_) return std::nullopt;
  return static_cast<PeerId>(rank < own_rank_ ? rank : rank - 1);
}

std::optional<PeerId> MemberTable::find(const std::string& name) const {
  const auto taken = taken_.find(name);
  if (taken != taken_.end()) return taken->second;
  const auto rank = seeds_->names()->find(name);
  const auto place = rank ? place_of_rank(*rank) : std::nullopt;
  // The place may have been freed, and taken by another.
  return place && (*this)[*place].claim.name == name ? place : std::nullopt;
}

const std::string* MemberTable::seed_at(const std::string& address, std::uint16_t port) const {
  const auto rank = seeds_->find_address(address, port);
  const auto place = rank ? place_of_rank(*rank) : std::nullopt;
  if (!place) return nullptr;
  const Member& member = (*this)[*place];
  const bool still =
      member.seed && member.claim.port == port &&
      std::ranges::find(member.claim.addresses, address) != member.claim.addresses.end();
  return still ? &member.claim.name : nullptr;
}

std::uint64_t MemberTable::first_digest() const {
  if (own_rank_ == seeds_->size()) return seeds_->digest();
  const MemberClaim& own = seeds_->at(own_rank_).claim;
  return seeds_->digest() ^ (own.incarnation == 0 ? 0 : digest_of(own));
}

std::size_t MemberTable::first_running() const {
  const bool own_runs = own_rank_ < seeds_->size() && seeds_->at(own_rank_).claim.incarnation != 0;
  return seeds_->running() - (own_runs ? 1 : 0);
}

PeerId MemberTable::append() {
  const auto place = static_cast<PeerId>(size_++);
  own_.at_or(place, {});
  return place;
}

void MemberTable::take(PeerId place, const std::string& name) {
  Member& member = edit(place);
  DPWA_INVARIANT(member.claim.name.empty(), "a place is free when it is taken", place,
                 member.claim.name, name);
  DPWA_INVARIANT(!find(name), "a member has one place", name, place);
  taken_.emplace(name, place);
  member.claim.name = name;
  ++named_;
  DPWA_INVARIANT(named_ <= size_, "no more places are taken than there are", named_, size_);
}

void MemberTable::free(PeerId place) {
  Member& member = edit(place);
  DPWA_INVARIANT(!member.claim.name.empty() && named_ > 0, "a place is taken when it is freed",
                 place, named_);
  taken_.erase(member.claim.name);
  member = {};
  --named_;
}

std::vector<PeerId> MemberTable::own_places() const {
  std::vector<PeerId> places;
  for_each_own([&](PeerId place, const Member&) { places.push_back(place); });
  return places;
}

}  // namespace dpwa
