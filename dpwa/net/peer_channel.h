#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/net/connection.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/pull_result.h"
#include "dpwa/net/reply_reader.h"
#include "dpwa/net/same_host/peer_memory.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/session/requests.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

struct LocalProcess;

// The one kept connection to a peer. Of what it does one is under way at a time; a pull and news of
// members are two requests, which leave together. It connects and shakes hands when
// needed, and closes after any failure, because the stream may then hold half a reply. If the peer
// offers its memory to this host, pulls use that while it works (same_host/peer_memory.h). The
// caller keeps the deadlines: it closes the channel, and the pending call returns at whatever step
// it is, without connecting again. Tx thread only.
class PeerChannel {
 public:
  // An address without a name stands for any node that answers there. `staging` holds one reply
  // chunk while it is hot in cache. All channels of the thread share it. `same_host`: use offers of
  // memory.
  PeerChannel(boost::asio::io_context& io, LocalProcess& local, PeerAddress address,
              AlignedBuffer& staging, bool same_host);

  // A pull: ask() until the head of the reply is there, then, without waiting for anything else,
  // land() or decline(), whether the parameters come over TCP or TLS or from the peer's memory.
  boost::asio::awaitable<PullResult> ask(PullRequest request);
  boost::asio::awaitable<PullResult> land(Landing& landing);
  // The parameters are not wanted for this reason: the result states it.
  boost::asio::awaitable<PullResult> decline(PeerFailure why);
  // A new handshake. The result: the WELCOME of the peer.
  struct Greeting {
    std::optional<PeerFailure> failure;
    std::string detail;
    wire::Welcome welcome;
    std::optional<wire::RejectCode> reject = std::nullopt;
  };
  boost::asio::awaitable<Greeting> greet();
  // Exchanges membership with the peer: once, or until its whole table is known (`all`). After
  // greet().
  boost::asio::awaitable<Greeting> exchange_members(bool all);
  void close();  // ends what is under way

  bool is_open() const { return connection_.is_open(); }
  const PeerAddress& address() const { return address_; }
  const std::string& name() const { return address_.name; }
  bool same_host() const { return memory_.is_open(); }  // how the next pull goes
  bool keeps_ledger() const;                            // both ends do, on this connection

 private:
  void begin();  // something that close() may end
  boost::asio::awaitable<void> release(bool landed);
  // The memory of the peer cannot be used: the same pull goes on over TCP.
  void give_up_memory(const std::string& why);
  void hang_up();  // what is under way may connect again
  boost::asio::awaitable<net::IoResult<wire::Welcome>> shake_hands();
  bool has_news() const;
  std::vector<std::byte> begin_news();  // the frame of a request, news_ from now on
  // Reads until the answer to this request is there. Takes the answer to news_ on the way.
  boost::asio::awaitable<net::IoResult<net::Frame>> answer_to(
      std::uint32_t request, std::uint64_t most_snapshot_bytes = 0);
  std::optional<net::Failure> take_members(const net::Frame& answer);
  // Reads the answer to news_, unless it is there already.
  boost::asio::awaitable<std::optional<net::Failure>> hear_out_news();
  bool exchanges() const;
  bool has_surplus() const;  // bytes have come that no request has asked for

  net::IoThread thread_;
  LocalProcess& local_;
  PeerAddress address_;
  net::Connection connection_;
  ReplyReader reader_;
  same_host::PeerMemory memory_;    // open only while connection_ is
  std::uint64_t incarnation_ = 0;   // of the peer, on this connection
  std::uint32_t capabilities_ = 0;  // likewise
  bool kept_ = false;               // the reply comes over a connection that was there before
  // The request whose parameters lie in the peer's memory until release(); 0: they come over TCP.
  std::uint32_t lent_for_ = 0;
  session::Requests requests_;  // on this connection
  std::uint32_t news_ = 0;      // the last request of news
  bool more_wanted_ = false;    // of the peer's table
  bool closed_ = false;         // by the caller, since it began what is under way
};

}  // namespace dpwa
