#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "dpwa/net/io_thread.h"
#include "dpwa/net/peer_channel.h"
#include "dpwa/rules/member.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/per_peer.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {

struct LocalProcess;

// The channels to the peers that this node has asked, made when a peer is first asked. Those used
// last stay connected. Tx thread only.
class PeerChannels {
 public:
  static constexpr std::size_t max_connected = 64;

  // `listed`: the addresses of the file, by PeerId.
  PeerChannels(boost::asio::io_context& io, LocalProcess& local, std::vector<PeerAddress> listed,
               std::size_t chunk_bytes, bool same_host);

  // Hold the result while it is used: the place may pass to another peer meanwhile.
  std::shared_ptr<PeerChannel> get(PeerId peer);
  // The same, for a connection to keep. It may close the connection that was used longest ago.
  std::shared_ptr<PeerChannel> keep(PeerId peer);
  // A separate connection, to whichever node answers there.
  PeerChannel apart(PeerAddress address);
  // The entry of `peer` in the member table has changed. `another`: it is another node than before.
  void take_up(PeerId peer, const MemberClaim& claim, bool another);
  bool same_host(PeerId peer) const;
  void close();  // all channels; requests under way end

 private:
  PeerAddress address_of(PeerId peer) const;

  net::IoThread thread_;
  boost::asio::io_context& io_;
  LocalProcess& local_;
  const std::vector<PeerAddress> listed_;
  const bool same_host_;
  AlignedBuffer staging_;  // shared by all of them: one reads at a time
  std::unordered_map<PeerId, std::shared_ptr<PeerChannel>> channels_;
  KeptConnections kept_{max_connected};
};

}  // namespace dpwa
