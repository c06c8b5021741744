#include "dpwa/rules/peer_names.h"

#include <algorithm>
#include <utility>

namespace dpwa {
namespace {

const std::string& nobody = *new std::string;  // never destroyed

}  // namespace

ClusterNames::ClusterNames(std::vector<std::string> names) : names_(std::move(names)) {
  ranks_.reserve(names_.size());
  for (std::size_t rank = 0; rank < names_.size(); ++rank)
    ranks_.emplace(names_[rank], static_cast<std::uint32_t>(rank));
}

std::optional<std::size_t> ClusterNames::find(const std::string& name) const {
  const auto found = ranks_.find(name);
  return found == ranks_.end() ? std::nullopt : std::optional<std::size_t>(found->second);
}

PeerNames::PeerNames(std::shared_ptr<const ClusterNames> names)
    : shared_(std::move(names)), own_rank_(shared_->size()), size_(shared_->size()) {}

PeerNames::PeerNames(std::shared_ptr<const ClusterNames> names, std::size_t own_rank)
    : shared_(std::move(names)), own_rank_(own_rank), size_(shared_->size()) {
  if (own_rank_ < size_) --size_;
}

const std::string& PeerNames::shared_at(PeerId peer) const {
  const std::size_t rank = peer < own_rank_ ? peer : std::size_t{peer} + 1;
  return rank < shared_->size() ? shared_->at(rank) : nobody;
}

const std::string& PeerNames::at(PeerId peer) const {
  const std::string* own = own_.find(peer);
  return own != nullptr ? *own : shared_at(peer);
}

std::optional<PeerId> PeerNames::find_shared(const std::string& name) const {
  const auto rank = shared_->find(name);
  if (!rank || *rank == own_rank_) return std::nullopt;
  return static_cast<PeerId>(*rank < own_rank_ ? *rank : *rank - 1);
}

std::optional<PeerId> PeerNames::find(const std::string& name) const {
  const auto found = places_.find(name);
  if (found != places_.end()) return found->second;
  const auto shared = find_shared(name);
  return shared && own_.find(*shared) == nullptr ? shared : std::nullopt;
}

void PeerNames::put(PeerId peer, const std::string& name) {
  size_ = std::max<std::size_t>(size_, std::size_t{peer} + 1);
  if (const std::string* before = own_.find(peer)) {
    const auto place = places_.find(*before);
    if (place != places_.end() && place->second == peer) places_.erase(place);
  }
  if (find_shared(name) == peer) {
    own_.erase(peer);
    places_.erase(name);
    return;
  }
  own_[peer] = name;
  places_.insert_or_assign(name, peer);
}

}  // namespace dpwa
