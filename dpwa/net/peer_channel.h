#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/core/peer_table.h"
#include "dpwa/core/progress.h"
#include "dpwa/net/frame_io.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// What an attempt at a peer came to.
struct PullResult {
  std::optional<PeerFailure> failure;  // none: the snapshot landed
  std::string detail;                  // one line on the failure, for the log
  Progress progress;                   // the peer's, once its reply was read
  std::uint64_t bytes = 0;             // of parameters received
  std::uint64_t incarnation = 0;       // of the peer on this connection; 0 = it did not greet us
};

struct PullRequest {
  bool full = false;
  bool for_final_average = false;
  std::uint32_t deadline_ms = 0;  // stated to the peer
  // The snapshot taken from it last: it need not send that again. Version 0 = none.
  std::uint64_t known_incarnation = 0;
  std::uint64_t known_version = 0;
  // Asked once the head has arrived, before any parameters: a failure ends the pull.
  std::function<std::optional<PeerFailure>(const Progress&)> judge;
  // Called next: makes the landing ready for the parameters.
  std::function<void()> begin_landing;
};

// The one kept connection to a peer, for requests one at a time: connects and shakes hands when
// needed, and closes after any failure, since the stream may then hold half a reply. Deadlines are
// the caller's: it closes the channel, and the pending call returns. Tx thread only.
class PeerChannel {
 public:
  // `staging` holds one reply chunk while it is hot in cache; shared by all channels of the thread.
  PeerChannel(boost::asio::io_context& io, const LocalNode& local, PeerAddress address,
              std::string congestion_control, AlignedBuffer& staging);

  boost::asio::awaitable<PullResult> pull(PullRequest request, Landing& landing);
  // A fresh handshake: what the peer says of itself.
  struct Greeting {
    std::optional<PeerFailure> failure;
    std::string detail;
    wire::Welcome welcome;
  };
  boost::asio::awaitable<Greeting> greet();
  void close();

  const std::string& name() const { return address_.name; }

  // Bytes of reply that come before the first chunk's payload.
  static constexpr std::size_t reply_lead_bytes =
      wire::header_bytes + wire::snapshot_head_bytes + wire::chunk_header_bytes;
  // A staging buffer for chunks of up to `chunk_bytes`.
  static AlignedBuffer make_staging(std::size_t chunk_bytes);

 private:
  boost::asio::awaitable<Greeting> shake_hands();
  boost::asio::awaitable<PullResult> receive(PullRequest request, std::uint32_t request_id,
                                             Landing& landing);
  boost::asio::awaitable<PullResult> receive_chunks(wire::SnapshotHead head, std::size_t buffered,
                                                    Landing& landing);

  const LocalNode& local_;
  const PeerAddress address_;
  const std::string congestion_control_;
  AlignedBuffer& staging_;
  boost::asio::ip::tcp::socket socket_;
  std::uint64_t incarnation_ = 0;  // of the peer, on this connection
  std::uint32_t next_request_id_ = 1;
};

}  // namespace dpwa
