#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/pull_result.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa {
struct LocalProcess;
}

namespace dpwa::same_host {

class FrameSocket;

// The kept connection to a peer of this host, and its snapshot buffers, each mapped once. Requests
// one at a time. Closed by any failure, by the caller (a deadline) and when the peer ends; the
// mappings go with it. It may be destroyed whenever no call is under way, and leaves nothing
// waiting. Tx thread only.
class MappedPeer {
 public:
  // `payload`: memory for one chunk in its encoded form, used while a chunk is read and not kept.
  MappedPeer(boost::asio::io_context& io, LocalProcess& local, std::string peer,
             std::span<std::byte> payload);

  // Connects and shakes hands with the peer in its `incarnation`. Empty: done; else why not.
  boost::asio::awaitable<std::string> connect(Offer offer, std::uint64_t incarnation);
  // As those of PeerChannel, over an open connection. The same values land as over TCP: with
  // a codec each chunk is encoded here, as the peer would, and decoded again.
  boost::asio::awaitable<PullResult> ask(PullRequest request);
  boost::asio::awaitable<PullResult> land(Landing& landing);
  boost::asio::awaitable<PullResult> decline(PeerFailure why);
  bool is_open() const;
  void close();

 private:
  // Memory that the peer lends until release().
  struct Lent {
    std::shared_ptr<MemoryFile> memory;
    wire::Mapped reply;
    Codec codec = Codec::raw;
  };

  boost::asio::awaitable<std::string> shake_hands(std::uint64_t incarnation);
  boost::asio::awaitable<PullResult> exchange(const PullRequest& request);
  // The result of ask() for the reply of the peer; sets lent_ if the reply is sound.
  PullResult take_over(const PullRequest& request, const wire::Mapped& reply,
                       FileDescriptor descriptor);
  boost::asio::awaitable<PullResult> read(Lent lent, Landing& landing);
  // Lands a part of the snapshot. The bytes that it would have taken over TCP.
  std::uint64_t land_piece(const MemoryFile& memory, ByteRange piece, Codec codec,
                           Landing& landing);
  boost::asio::awaitable<void> release(bool landed);
  // The request is over; `whole`: the connection can take the next one.
  PullResult finish(PullResult result, bool whole);
  // The memory that `reply` names; null: `why` says what is wrong with it.
  std::shared_ptr<MemoryFile> memory_of(const wire::Mapped& reply, FileDescriptor descriptor,
                                        std::string& why);
  void watch();

  net::IoThread thread_;
  boost::asio::io_context& io_;
  LocalProcess& local_;
  const std::string peer_;
  const std::span<std::byte> payload_;
  std::shared_ptr<FrameSocket> socket_;  // null before the first connect; no other owner
  std::vector<std::shared_ptr<MemoryFile>> buffers_;  // by the peer's number of the buffer
  std::uint64_t incarnation_ = 0;                     // of the peer, on this connection
  std::uint32_t next_request_id_ = 1;
  std::optional<Lent> lent_;  // from ask() until land() or decline()
  bool busy_ = false;         // a request is under way
  bool watching_ = false;     // for the end of the connection
};

}  // namespace dpwa::same_host
