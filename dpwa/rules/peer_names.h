#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dpwa/rules/per_peer.h"

namespace dpwa {

// The names of all nodes of a cluster, each at its rank. Immutable: many tables share one.
class ClusterNames {
 public:
  explicit ClusterNames(std::vector<std::string> names);
  ClusterNames(const ClusterNames&) = delete;
  ClusterNames& operator=(const ClusterNames&) = delete;

  std::size_t size() const { return names_.size(); }
  const std::string& at(std::size_t rank) const { return names_[rank]; }
  // The lowest rank of that name.
  std::optional<std::size_t> find(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string_view, std::uint32_t> ranks_;  // into names_
};

// The names of a node's peers by place (PeerId): those of a shared table, and the few that differ
// from it because nodes have joined or their places have been taken. One owner, one thread.
class PeerNames {
 public:
  // Place and rank are the same.
  explicit PeerNames(std::shared_ptr<const ClusterNames> names);
  // For the node with this rank: its peers are all the others, in the order of their ranks.
  PeerNames(std::shared_ptr<const ClusterNames> names, std::size_t own_rank);

  std::size_t size() const { return size_; }
  // Empty: no peer has that place.
  const std::string& at(PeerId peer) const;
  // If two places have the same name, the one that was put last.
  std::optional<PeerId> find(const std::string& name) const;
  // Gives the place to `name`; the place may lie beyond the last one.
  void put(PeerId peer, const std::string& name);

 private:
  std::optional<PeerId> find_shared(const std::string& name) const;
  const std::string& shared_at(PeerId peer) const;

  std::shared_ptr<const ClusterNames> shared_;
  std::size_t own_rank_;  // shared_->size(): the own node is not among them
  std::size_t size_;
  PerPeer<std::string> own_;                        // where it differs from shared_
  std::unordered_map<std::string, PeerId> places_;  // of these
};

}  // namespace dpwa
