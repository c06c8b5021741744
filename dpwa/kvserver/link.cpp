#include "dpwa/kvserver/link.h"

#include <utility>

#include "dpwa/kvserver/limits.h"
#include "dpwa/kvstore/link_limits.h"

namespace dpwa::kvserver {

Link::Link(boost::asio::io_context& io, LocalProcess& local, PeerAddress server,
           std::function<void(const kvstore::MemberId& server)> lost)
    : StoreLink(io, local,
                {std::move(server),
                 {},
                 kvstore::write_time_of_server,
                 /*redials_at_once=*/true}),
      lost_(std::move(lost)) {}

void Link::send(kvstore::Message message) {
  thread_.check();
  if (!is_connected()) return;
  outgoing_.add(std::move(message), 0);
  if (outgoing_.bytes() > most_queued_for_server) return close();
  wake();
}

void Link::connected(const wire::Welcome& welcome) {
  if (incarnation_ != 0 && incarnation_ != welcome.incarnation) lost_({name(), incarnation_});
  incarnation_ = welcome.incarnation;
  log(LogLevel::info, "kvserver", "connected to server '" + name() + "'");
}

void Link::failed(const net::Failure& failure, LogLevel level, bool was_connected) {
  if (!was_connected) {
    if (failure.nobody_listens && incarnation_ != 0) lost_({name(), incarnation_});
    return not_reached(failure, level);
  }
  if (!failure.is_protocol()) return;
  ++local().traffic.protocol_errors;
  log(LogLevel::warn, "kvserver", "server '" + name() + "': connection closed: " + failure.detail);
}

void Link::not_reached(const net::Failure& failure, LogLevel level) {
  if (is_stopped() || expects_end_) return;
  const bool early = level == LogLevel::info;
  log(limiter_, (early ? "early " : "") + net::log_key(failure), level, "kvserver",
      (early ? "not there yet: server '" : "cannot reach server '") + name() +
          "': " + failure.detail);
}

}  // namespace dpwa::kvserver
