#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/same_host/memory_exchange.h"
#include "dpwa/net/stream.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::kvclient {

// What a link tells its owner, on the I/O thread.
class LinkEvents {
 public:
  virtual void arrived(const kvstore::MemberId& from, std::uint64_t tag,
                       kvstore::Message message) = 0;
  // Where the values of this answer are to land; empty: nowhere yet.
  virtual std::span<std::byte> target_of(const kvstore::Answer& answer) = 0;
  // Of the value of this slice; none: it is unknown here.
  virtual std::optional<std::size_t> bytes_of(const kvstore::SliceId& slice) const = 0;
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
             std::string congestion_control, bool same_host, LinkEvents& events);

  void start();
  void stop();
  // Memory of this process that a server of the same host reads where it is. Number: from 0.
  void share(const AlignedBuffer& memory);
  void send(std::uint64_t tag, kvstore::Message message);
  // The pushes of this slice up to this step are not to be sent any more.
  void drop(const kvstore::SliceId& slice, std::uint64_t step);
  void drop_requests();
  // Whether the memory of such a push is being read by the system.
  bool writes(const kvstore::SliceId& slice, std::uint64_t step) const;
  // Ends the connection if the frame on its way has been there since before `since`.
  void break_off(TimePoint since);
  // No memory that target_of() named is written to after this: the connection ends where it is.
  void stop_landing();

  // The server reads pushes from memory that was shared.
  bool uses_memory() const { return exchange_ != nullptr; }
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
  void open_door(const std::string& offer);
  void close_door();
  // What is wrong with the length of the values of this answer; empty: nothing. `landed`: they have
  // been read to their place already.
  std::string wrong_length(const kvstore::Answer& answer, bool landed) const;
  // Why the values of this answer cannot be read; empty: they have been.
  std::string take_values(kvstore::Answer& answer);
  // The same push without its values, where the server can read them; none otherwise.
  std::optional<kvstore::Message> mapped(const kvstore::Message& message) const;
  void failed(std::string problem);

  net::IoThread thread_;
  boost::asio::io_context& io_;
  LocalNode& local_;
  const PeerAddress server_;
  const std::string congestion_control_;
  const bool same_host_;
  LinkEvents& events_;
  std::deque<Waiting> first_;     // beats, votes, epochs
  std::deque<Waiting> requests_;  // of slices
  std::optional<Waiting> under_way_;
  TimePoint began_{};  // to write it
  std::shared_ptr<net::Stream> stream_;
  std::vector<AlignedBuffer> memories_;                  // that are shared
  std::shared_ptr<same_host::MemoryExchange> exchange_;  // with a server of this host; or null
  std::span<std::byte> landing_;                         // where values are being read to
  std::uint64_t read_ = 0;  // the last KV_ANSWER_MAPPED of the connection whose values were read
  std::uint64_t told_ = 0;  // and that the server knows of
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
