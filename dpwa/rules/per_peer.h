#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dpwa/base/invariant.h"

namespace dpwa {

using PeerId = std::uint32_t;  // a peer's place in the peer table

// The place number `index` (from 0) of those that are not in `sorted`, which ascends without
// repeats.
inline PeerId nth_absent(std::span<const PeerId> sorted, std::size_t index) {
  std::size_t low = 0;
  std::size_t high = sorted.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    // This many places below sorted[middle] are absent.
    if (sorted[middle] - middle <= index) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<PeerId>(index + low);
}

// A set of peers: four bytes each, in ascending order. One owner, one thread.
class PeerSet {
 public:
  bool contains(PeerId peer) const { return std::ranges::binary_search(peers_, peer); }
  void insert(PeerId peer) {
    const auto at = std::ranges::lower_bound(peers_, peer);
    if (at == peers_.end() || *at != peer) peers_.insert(at, peer);
  }
  void erase(PeerId peer) {
    const auto at = std::ranges::lower_bound(peers_, peer);
    if (at != peers_.end() && *at == peer) peers_.erase(at);
  }
  void clear() { peers_.clear(); }
  // How many of them come before `peer`.
  std::size_t count_before(PeerId peer) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(peers_, peer) - peers_.begin());
  }

  std::span<const PeerId> peers() const { return peers_; }
  std::size_t size() const { return peers_.size(); }

 private:
  std::vector<PeerId> peers_;
};

// Values kept per peer, only for peers that have one: memory grows with these peers, not with the
// cluster. A peer is found in O(log size). References last until the next insertion or erasure. One
// owner, one thread.
template <typename Value>
class PerPeer {
 public:
  struct Entry {
    PeerId peer;
    Value value;
  };

  const Value* find(PeerId peer) const {
    const auto at = lower_bound(peer);
    return is_at(at, peer) ? &entries_[at->entry].value : nullptr;
  }
  Value* find(PeerId peer) { return const_cast<Value*>(std::as_const(*this).find(peer)); }

  // The value of `peer`, made a copy of `initial` where it has none.
  Value& at_or(PeerId peer, const Value& initial) {
    if (Value* value = find(peer)) return *value;
    // An insertion is undone when memory is refused.
    if (index_.size() == index_.capacity()) index_.reserve(2 * index_.size() + 4);
    const auto entry = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({peer, initial});
    index_.insert(lower_bound(peer), {peer, entry});
    return entries_.back().value;
  }
  Value& operator[](PeerId peer) { return at_or(peer, Value{}); }

  void erase(PeerId peer) {
    const auto at = lower_bound(peer);
    if (!is_at(at, peer)) return;
    const std::uint32_t entry = at->entry;
    index_.erase(at);
    if (entry + 1 < entries_.size()) {
      entries_[entry] = std::move(entries_.back());
      const auto moved = lower_bound(entries_[entry].peer);
      index_[static_cast<std::size_t>(moved - index_.begin())].entry = entry;
    }
    entries_.pop_back();
  }
  void clear() {
    entries_.clear();
    index_.clear();
  }

  // In the order of insertion; the last value takes the place of an erased one.
  std::span<const Entry> entries() const { return entries_; }
  // The position in entries() of a peer that has a value.
  std::uint32_t position(PeerId peer) const {
    const auto at = lower_bound(peer);
    DPWA_INVARIANT(is_at(at, peer), "a peer whose position is asked for has a value", peer);
    return at->entry;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Place {
    PeerId peer;
    std::uint32_t entry;  // in entries_
  };
  using Places = std::vector<Place>;

  typename Places::const_iterator lower_bound(PeerId peer) const {
    return std::ranges::lower_bound(index_, peer, {}, &Place::peer);
  }
  bool is_at(typename Places::const_iterator at, PeerId peer) const {
    return at != index_.end() && at->peer == peer;
  }

  std::vector<Entry> entries_;
  Places index_;  // by PeerId
};

// The connections to peers that are kept: those used last. In a cluster of a thousand nodes, each
// with its connections to all others, everybody would have a thousand inbound, more than they
// admit. Pure; one owner, one thread.
class KeptConnections {
 public:
  explicit KeptConnections(std::size_t most) : most_(most) {}

  // The connection to `peer` is in use now: the one to close for it, if there are too many.
  std::optional<PeerId> use(PeerId peer) {
    std::erase(recent_, peer);
    recent_.push_back(peer);
    if (recent_.size() <= most_) return std::nullopt;
    const PeerId oldest = recent_.front();
    recent_.erase(recent_.begin());
    return oldest;
  }

 private:
  const std::size_t most_;
  std::vector<PeerId> recent_;  // used last at the end
};

}  // namespace dpwa
