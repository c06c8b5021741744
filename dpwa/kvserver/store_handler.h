#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/base/trace.h"
#include "dpwa/kvserver/shared_memory_server.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/request_handler.h"
#include "dpwa/net/same_host/leases.h"

namespace dpwa::kvserver {

// The messages of workers and of other servers on inbound connections, and the way back to workers.
// Messages have no replies of their own: the engine's messages for a worker are written to the
// newest connection of that name. Rx thread only.
class StoreHandler : public RequestHandler {
 public:
  using Receive = std::function<void(const kvstore::MemberId& from, std::uint64_t tag,
                                     kvstore::Message message)>;
  // The answer to a process that cannot have a connection now; none: it can.
  using Refuse = std::function<std::optional<kvstore::Answer>(const kvstore::MemberId& worker)>;
  // The last connection of a worker has ended.
  using Closed = std::function<void(const kvstore::MemberId& worker)>;
  // `servers`: the names of all servers. `door`: for workers of this host; null when there is none.
  // It outlives this object.
  StoreHandler(std::set<std::string> servers, Receive receive, SharedMemoryServer* door = nullptr,
               Refuse refuse = nullptr, Closed closed = nullptr)
      : servers_(std::move(servers)),
        receive_(std::move(receive)),
        shared_memory_(door),
        refuse_(std::move(refuse)),
        closed_(std::move(closed)) {}

  std::vector<wire::TypeBound> requests(const Requester& requester) const override;
  bool in_numbers() const override { return true; }
  // All but those of a worker that is refused.
  std::optional<bool> take_at_once(net::Frame& request, Responder& responder) override;
  boost::asio::awaitable<bool> answer(net::Frame request, Responder& responder) override;
  void connection_closed(const Responder& responder) override;

  // The message is dropped when the worker has no connection.
  void send(const std::string& worker, std::uint64_t tag, kvstore::Message message);
  // From whom bytes have come since the last call, and how many, also of messages that are not
  // whole yet: over a slow line a beat waits behind the values of a push.
  std::vector<std::pair<kvstore::MemberId, std::uint64_t>> arrivals();
  std::size_t workers() const { return newest_.size(); }  // the number that have a connection
  // Closes the connections of workers that keep memory of this server for too long (limits.h): they
  // stand still.
  void end_overdue(TimePoint now);

 private:
  struct Connection {
    explicit Connection(Responder& to) : responder(&to) {}
    Responder* responder;
    same_host::Leases lent;                      // values that the worker reads in place
    std::map<std::uint64_t, TracedSpan> traced;  // pushes and pulls by tag, until they are answered
  };
  static void trace_arrival(Connection& connection, std::uint64_t tag,
                            const kvstore::Message& message);
  static void trace_answer(Connection& connection, std::uint64_t tag,
                           const kvstore::Message& message);
  // Of these, none and false: the connection has to end.
  static std::optional<kvstore::Message> decode(net::Frame& request, Responder& responder);
  bool take_read(const net::Frame& request, Responder& responder);
  // False when the worker names memory that it has not shared: the connection has to end.
  bool find_memory(Responder& responder, kvstore::Message& message) const;
  void lend(Connection& connection, kvstore::Message& message) const;
  std::optional<kvstore::Answer> refusal(const kvstore::MemberId& worker) const;
  void begin(Responder& responder);  // the connection of a worker, with its first message
  // Closes connections of earlier processes of this name.
  void close_older(const Requester& requester);

  net::IoThread thread_;
  const std::set<std::string> servers_;
  const Receive receive_;
  SharedMemoryServer* const shared_memory_;
  const Refuse refuse_;
  const Closed closed_;
  std::map<const Responder*, std::shared_ptr<Connection>> connections_;  // of workers
  std::map<std::string, std::shared_ptr<Connection>> newest_;            // by name
  struct Arrivals {
    Responder* responder = nullptr;
    std::uint64_t bytes = 0;  // at the last call of arrivals()
  };
  std::map<const Responder*, Arrivals> arrivals_;
};

}  // namespace dpwa::kvserver
