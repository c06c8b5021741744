#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/net/pull_result.h"
#include "dpwa/net/same_host/memory_exchange.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/loan.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
struct LocalProcess;
}

namespace dpwa::same_host {

// The snapshot buffers of a peer of this host, each mapped once, for as long as the connection
// lasts over which it has shared them. Decides when they are used: the peer has offered that in its
// WELCOME, is on the same host, and the last try did not fail recently. After any failure pulls use
// TCP, and memory is tried again after some time, or when the peer makes another offer because it
// has restarted. May be destroyed whenever no call is under way. Tx thread only.
class PeerMemory {
 public:
  static constexpr Duration pause_after_failure = std::chrono::seconds(30);

  // `enabled` false: never. `payload`: memory for one chunk in its encoded form, used while a chunk
  // is read and not kept.
  PeerMemory(boost::asio::io_context& io, LocalProcess& local, std::string peer, bool enabled,
             std::span<std::byte> payload);
  ~PeerMemory() { close(); }

  void offered(const wire::Welcome& welcome);
  // Maps the buffers unless they are. False: TCP is to be used, or close() was called meanwhile.
  boost::asio::awaitable<bool> open();
  bool is_open() const { return exchange_ != nullptr && exchange_->is_open(); }
  void close();
  // Closes; `why` is wrong with the memory.
  void give_up(const std::string& why);

  // The peer has answered a pull with the place of its snapshot. The result is that of
  // PeerChannel::ask(); a failure is a fault of the peer.
  PullResult borrow(const PullRequest& request, const wire::Mapped& mapped);
  // Reads what was borrowed last, as PeerChannel::land(). The same values land as over TCP: with
  // a codec each chunk is encoded here, as the peer would, and decoded again.
  boost::asio::awaitable<PullResult> land(Landing& landing);
  const Progress& progress() const { return progress_; }  // of that snapshot

 private:
  // Lands a part of the snapshot. The bytes that it would have taken over TCP.
  std::uint64_t land_piece(ByteRange piece, Landing& landing);

  boost::asio::io_context& io_;
  LocalProcess& local_;
  const std::string peer_;
  const bool enabled_;
  const std::span<std::byte> payload_;
  std::shared_ptr<MemoryExchange> exchange_;  // null: closed by this end
  std::optional<Offer> offer_;
  std::uint64_t incarnation_ = 0;  // of the peer that made it
  TimePoint retry_at_ = TimePoint::min();
  std::optional<Offer> announced_;  // in the log
  std::optional<Loan> borrowed_;    // none: closed
  PullRequest request_;             // that it answers
  Progress progress_;
};

}  // namespace dpwa::same_host
