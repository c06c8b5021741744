#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/same_host/memory_exchange.h"
#include "dpwa/net/store_link.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::kvclient {

// The calls of a link to its owner, on the I/O thread.
class LinkEvents {
 public:
  virtual void arrived(const kvstore::MemberId& from, std::uint64_t tag,
                       kvstore::Message message) = 0;
  // The memory for the values of this answer; empty when there is none yet.
  virtual std::span<std::byte> target_of(const kvstore::Answer& answer) = 0;
  // The size of the value of this slice; none: it is unknown here.
  virtual std::optional<std::size_t> bytes_of(const kvstore::SliceId& slice) const = 0;
  // A frame has been written, or never will be: see ServerLink::writes().
  virtual void written() = 0;
  // The server has answered the greeting of a new connection.
  virtual void connected(const std::string& server) = 0;

 protected:
  ~LinkEvents() = default;
};

// Bytes of values that have travelled since the start: of pushes, compressed ones as they are, and
// of answers. Values that are sent again count again, and values that another process of this host
// reads in memory count as over TCP.
struct ValueTraffic {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

// The connection of a worker to one server of the store, with many requests outstanding. Messages
// leave in the order of send(), but short ones without a slice first. For a server that does not
// answer only requests are kept, each once; the engine sends again what matters. I/O thread only;
// outlives the run of its io_context after stop().
class ServerLink final : public net::StoreLink {
 public:
  ServerLink(boost::asio::io_context& io, LocalProcess& local, PeerAddress server, bool same_host,
             LinkEvents& events);

  // Memory of this process that a server of the same host reads in place. Numbered from 0.
  void share(const AlignedBuffer& memory);
  void send(std::uint64_t tag, kvstore::Message message);
  // Pushes of this slice up to this step are no longer sent.
  void drop(const kvstore::SliceId& slice, std::uint64_t step);
  void drop_requests();
  // Whether the system is reading the memory of such a push.
  bool writes(const kvstore::SliceId& slice, std::uint64_t step) const;
  // Ends the connection, and dials again as this process.
  void reconnect_as(LocalProcess& local);
  // Ends the connection if the frame being written was begun before `since`.
  void break_off(TimePoint since);
  // Time has passed, in parts of a second: a process that stood still did not listen meanwhile. The
  // connection ends when nothing comes for `longest_silence` (link_limits.h).
  void pass(Duration time, Duration longest_silence);
  // Asks the kernel how far the bytes are. Before in_transfer() and pass().
  void look();
  // After this no memory that target_of() named is written to: the connection ends at once.
  void stop_landing();

  // Whether the server reads pushes from shared memory.
  bool uses_memory() const { return exchange_ != nullptr; }
  // A message is half way, in either direction.
  bool in_transfer() const {
    return reading_values_ || !outgoing_.staged().empty() || progress_.outgoing > usual_outgoing;
  }
  const ValueTraffic& traffic() const { return traffic_; }
  // The problem of the last attempt; empty when connected.
  const std::string& problem() const { return problem_; }
  // Whether the server has turned this process away in its last answer, or is another one than the
  // one that was called: asking again is of no use.
  bool rejected() const { return rejected_; }

 private:
  // Of beats and the like, whose way is short.
  static constexpr std::size_t usual_outgoing = std::size_t{16} << 10;
  void connected(const wire::Welcome& welcome) override;
  std::optional<net::Failure> received(net::Frame frame) override;
  void failed(const net::Failure& failure, LogLevel level, bool was_connected) override;
  void disconnected() override;
  std::span<std::byte> target_of(wire::MessageType type, std::span<const std::byte> head,
                                 std::uint64_t bytes) override;
  void before_staging() override;
  // A push without its values, if the server can read them in place.
  std::optional<kvstore::Message> form_of(const kvstore::Message& message) override;
  void staged() override;
  void after_write(bool whole) override;
  void write_is_late(std::size_t bytes, Duration time) override;
  void end(std::string why);  // this connection, because of the server
  void tell(const std::string& problem, LogLevel level);
  void open_door(const std::string& offer);
  static boost::asio::awaitable<void> exchange_memory(
      std::shared_ptr<same_host::MemoryExchange> exchange);
  // The fault in the length of the values of this answer; empty: none. `landed`: they have been
  // read to their place already.
  std::string wrong_length(const kvstore::Answer& answer, bool landed) const;
  // Why the values of this answer cannot be read; empty: they have been.
  std::string take_values(kvstore::Answer& answer);

  const bool same_host_;
  LinkEvents& events_;
  kvstore::MemberId process_;                            // the server on this connection
  TimePoint began_{};                                    // to write what is staged
  std::uint64_t staged_values_ = 0;                      // bytes of them
  std::vector<AlignedBuffer> memories_;                  // the shared ones
  std::shared_ptr<same_host::MemoryExchange> exchange_;  // null: no server of this host
  std::span<std::byte> landing_;                         // the target of the values being read
  std::uint64_t read_ = 0;  // the last KV_ANSWER_MAPPED of the connection whose values were read
  std::uint64_t told_ = 0;  // the last one that the server knows was read
  Duration silence_{};      // since the last frame came, or a part of a long one moved
  net::SocketProgress progress_;
  // Between the last two looks bytes of the reply have come; while none is being read, bytes of
  // this end were acknowledged.
  bool moves_ = false;
  bool reading_values_ = false;
  ValueTraffic traffic_;
  std::string problem_ = "not reached yet";
  LogLevel told_level_ = LogLevel::trace;  // of problem_, in the log
  bool rejected_ = false;
  std::string turned_away_;  // why the server ends this connection; empty: it does not
};

}  // namespace dpwa::kvclient
