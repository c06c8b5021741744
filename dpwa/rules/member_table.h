#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/member.h"
#include "dpwa/rules/peer_names.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// The nodes of a cluster file as every node begins with them, each at its rank and all alive.
// Immutable: the member tables of many nodes share one.
class Seeds {
 public:
  // `known`: since when those with an incarnation are known. The others were never heard of.
  explicit Seeds(std::vector<MemberClaim> claims, TimePoint known = TimePoint::min());

  std::size_t size() const { return members_.size(); }
  const Member& at(std::size_t rank) const { return members_[rank]; }
  const std::shared_ptr<const ClusterNames>& names() const { return names_; }
  // The node whose address that is; of several the one with the lowest rank.
  std::optional<std::size_t> find_address(const std::string& address, std::uint16_t port) const;
  std::uint64_t digest() const { return digest_; }  // of those with an incarnation
  std::size_t running() const { return running_; }  // the same

 private:
  std::vector<Member> members_;
  std::shared_ptr<const ClusterNames> names_;
  std::unordered_map<std::string, std::uint32_t> ranks_;  // by address and port
  std::uint64_t digest_ = 0;
  std::size_t running_ = 0;
};

// An address and its port as one key.
std::string place_of(const std::string& address, std::uint16_t port);

// The members that a node knows, by place (PeerId): those of a shared table, and an entry of its
// own for each member that differs from it because the node has dealt with it, heard news of it,
// or because it joined. One owner, one thread.
class MemberTable {
 public:
  // Place and rank are the same.
  explicit MemberTable(std::shared_ptr<const Seeds> seeds);
  // For the node with this rank: its members are all the others, in the order of their ranks.
  MemberTable(std::shared_ptr<const Seeds> seeds, std::size_t own_rank);

  std::size_t size() const { return size_; }    // places, free ones too
  std::size_t named() const { return named_; }  // places that are taken
  const Member& operator[](PeerId place) const;
  // To change it. The reference lasts until another place is changed for the first time.
  Member& edit(PeerId place);
  std::optional<PeerId> find(const std::string& name) const;
  // The name of the seed of the shared table that has that address still.
  const std::string* seed_at(const std::string& address, std::uint16_t port) const;

  // The digest and the number of the seeds, as the node begins with them.
  std::uint64_t first_digest() const;
  std::size_t first_running() const;

  PeerId append();  // a free place
  void take(PeerId place, const std::string& name);
  void free(PeerId place);

  // visit(place, member) for the members with an entry of their own, by place. All others are seeds
  // that are alive as far as is known, and that this node has had nothing to do with.
  template <typename Visit>
  void for_each_own(const Visit& visit) const {
    for (std::size_t i = 0; i < own_.size(); ++i) visit(own_.nth(i).peer, own_.nth(i).value);
  }
  std::vector<PeerId> own_places() const;

  class Iterator {
   public:
    using value_type = Member;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const MemberTable& table, PeerId place) : table_(&table), place_(place) {}
    const Member& operator*() const { return (*table_)[place_]; }
    Iterator& operator++() {
      ++place_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++place_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const MemberTable* table_ = nullptr;
    PeerId place_ = 0;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, static_cast<PeerId>(size_)}; }

 private:
  friend struct InvariantTest<MemberTable>;
  std::size_t rank_of(PeerId place) const { return place < own_rank_ ? place : place + 1UL; }
  std::size_t shared() const { return seeds_->size() - (own_rank_ < seeds_->size() ? 1 : 0); }
  // Of a place without an entry of its own.
  const Member& shared_at(PeerId place) const;
  // The place of a seed of the shared table.
  std::optional<PeerId> place_of_rank(std::size_t rank) const;

  std::shared_ptr<const Seeds> seeds_;
  std::size_t own_rank_;  // seeds_->size(): the own node is not among them
  std::size_t size_;
  std::size_t named_;
  PerPeer<Member> own_;
  std::unordered_map<std::string, PeerId> taken_;  // places by name, since the beginning
};

}  // namespace dpwa
