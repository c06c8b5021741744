#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/net/pull_result.h"
#include "dpwa/net/same_host/mapped_peer.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
struct LocalProcess;
}

namespace dpwa::same_host {

// Decides when to pull from a peer through its memory: the peer has offered that in its WELCOME, is
// on the same host, and the last try did not fail recently. After any failure the pull uses TCP,
// and memory is tried again after some time, or when the peer makes another offer because it has
// restarted. Tx thread only.
class Path {
 public:
  static constexpr Duration pause_after_failure = std::chrono::seconds(30);

  // `enabled` false: never. `payload`: as MappedPeer's.
  Path(boost::asio::io_context& io, LocalProcess& local, std::string peer, bool enabled,
       std::span<std::byte> payload);

  void offered(const wire::Welcome& welcome);
  // As those of PeerChannel. None: TCP is to be used.
  boost::asio::awaitable<std::optional<PullResult>> ask(PullRequest request);
  boost::asio::awaitable<PullResult> land(Landing& landing);
  boost::asio::awaitable<PullResult> decline(PeerFailure why) { return memory_.decline(why); }
  bool in_use() const { return memory_.is_open(); }
  // As those of PeerChannel.
  void begin() { closed_ = false; }
  void hang_up() { memory_.close(); }
  void close();

 private:
  boost::asio::awaitable<bool> open();
  // Whether `result` is the answer. If not, asking again takes a new connection to the memory, or
  // TCP.
  bool settles(const PullResult& result);
  void give_up(const std::string& why);

  LocalProcess& local_;
  const std::string peer_;
  const bool enabled_;
  MappedPeer memory_;
  std::optional<Offer> offer_;
  std::uint64_t incarnation_ = 0;  // of the peer that made it
  TimePoint retry_at_ = TimePoint::min();
  std::optional<Offer> announced_;  // in the log
  bool kept_ = false;    // the connection was there before the pull: it may have died unnoticed
  bool closed_ = false;  // by the caller, since it began what is under way
};

}  // namespace dpwa::same_host
