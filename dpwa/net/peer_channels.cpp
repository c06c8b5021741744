#include "dpwa/net/peer_channels.h"

#include <utility>

#include "dpwa/net/local_process.h"
#include "dpwa/net/reply_reader.h"

namespace dpwa {

PeerChannels::PeerChannels(boost::asio::io_context& io, LocalProcess& local,
                           std::vector<PeerAddress> listed, std::size_t chunk_bytes, bool same_host)
    : io_(io),
      local_(local),
      listed_(std::move(listed)),
      same_host_(same_host),
      staging_(ReplyReader::make_staging(chunk_bytes)) {}

PeerAddress PeerChannels::address_of(PeerId peer) const {
  auto claim = local_.members->claim_at(peer);
  const bool told = local_.members->exchanges() && claim && !claim->addresses.empty();
  if (!told && peer < listed_.size()) return listed_[peer];
  if (!claim) return {};
  std::string host = local_.members->host_of(claim->name);
  return {std::move(claim->name), std::move(claim->addresses), claim->port, std::move(host)};
}

std::shared_ptr<PeerChannel> PeerChannels::get(PeerId peer) {
  thread_.check();
  const auto found = channels_.find(peer);
  if (found != channels_.end()) return found->second;
  auto channel = std::make_shared<PeerChannel>(io_, local_, address_of(peer), staging_, same_host_);
  channels_.emplace(peer, channel);
  return channel;
}

std::shared_ptr<PeerChannel> PeerChannels::keep(PeerId peer) {
  if (const auto idle = kept_.use(peer)) {
    if (const auto found = channels_.find(*idle); found != channels_.end()) found->second->close();
  }
  return get(peer);
}

PeerChannel PeerChannels::apart(PeerAddress address) {
  thread_.check();
  return {io_, local_, std::move(address), staging_, /*same_host=*/false};
}

void PeerChannels::take_up(PeerId peer, const MemberClaim& claim, bool another) {
  thread_.check();
  const auto found = channels_.find(peer);
  if (found == channels_.end()) return;
  const PeerAddress& address = found->second->address();
  const bool moved = !claim.addresses.empty() &&
                     (address.addresses != claim.addresses || address.port != claim.port);
  if (!another && !moved) return;
  found->second->close();  // what is under way there ends
  channels_.erase(found);
}

bool PeerChannels::same_host(PeerId peer) const {
  const auto found = channels_.find(peer);
  return found != channels_.end() && found->second->same_host();
}

void PeerChannels::close() {
  thread_.check();
  for (const auto& [peer, channel] : channels_) channel->close();
}

}  // namespace dpwa
