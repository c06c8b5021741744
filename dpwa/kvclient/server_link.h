#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/stream.h"

namespace dpwa::kvclient {

// What a link tells its owner, on the I/O thread.
class LinkEvents {
 public:
  virtual void arrived(const kvstore::MemberId& from, std::uint64_t tag,
                       kvstore::Message message) = 0;
  virtual void written() = 0;  // a frame, or it never will be: see ServerLink::writes()

 protected:
  ~LinkEvents() = default;
};

// The connection of a worker to one server of the store: dials until it answers, and again after
// each failure, with back-off. Messages leave in the order of send(), short ones without a slice
// first. Nothing is kept for a server that does not answer but requests, each once: the engine
// sends again what matters. I/O thread only; outlives the run of its io_context after stop().
class ServerLink {
 public:
  ServerLink(boost::asio::io_context& io, LocalNode& local, PeerAddress server,
             std::string congestion_control, LinkEvents& events);

  void start();
  void stop();
  void send(std::uint64_t tag, kvstore::Message message);
  // The pushes of this slice up to this step are not to be sent any more.
  void drop(const kvstore::SliceId& slice, std::uint64_t step);
  void drop_requests();
  // Whether the memory of such a push is being read by the system.
  bool writes(const kvstore::SliceId& slice, std::uint64_t step) const;
  // Ends the connection if the frame on its way has been there since before `since`.
  void break_off(TimePoint since);

  const std::string& name() const { return server_.name; }
  // Of the last attempt; empty: connected.
  const std::string& problem() const { return problem_; }

 private:
  struct Waiting {
    std::uint64_t tag = 0;
    kvstore::Message message;
  };
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> read(net::Stream& stream, kvstore::MemberId server);
  boost::asio::awaitable<void> write(std::shared_ptr<net::Stream> stream);
  boost::asio::awaitable<bool> write_one(net::Stream& stream);
  void failed(std::string problem);

  net::IoThread thread_;
  boost::asio::io_context& io_;
  LocalNode& local_;
  const PeerAddress server_;
  const std::string congestion_control_;
  LinkEvents& events_;
  std::deque<Waiting> first_;     // beats, votes, epochs
  std::deque<Waiting> requests_;  // of slices
  std::optional<Waiting> under_way_;
  TimePoint began_{};  // to write it
  std::shared_ptr<net::Stream> stream_;
  boost::asio::steady_timer more_;   // to write
  boost::asio::steady_timer again_;  // to dial
  boost::asio::steady_timer over_;   // the writing coroutine
  bool connected_ = false;
  bool writing_ = false;
  bool stopped_ = false;
  Duration back_off_;
  std::minstd_rand random_;
  std::string problem_ = "not reached yet";
};

}  // namespace dpwa::kvclient
