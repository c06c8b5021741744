#include "dpwa/group/group_link.h"

#include <chrono>
#include <utility>

#include "dpwa/session/outgoing.h"
#include "dpwa/wire/view_messages.h"

namespace dpwa::group {
namespace {

constexpr Duration write_time = std::chrono::seconds(10);

}  // namespace

GroupLink::GroupLink(boost::asio::io_context& io, LocalProcess& local, PeerAddress peer,
                     LinkEvents& events)
    : StoreLink(io, local, {std::move(peer), {}, write_time, /*redials_at_once=*/true}),
      events_(events) {}

void GroupLink::send(const members::ProcessId& from, const members::GroupMessage& message) {
  thread_.check();
  if (!is_connected()) return;
  outgoing_.add(wire::encode(from, message));
  wake();
}

void GroupLink::connected(const wire::Welcome&) {
  events_.connected(name());
}

// A process that is not there is for the group to name; what else is wrong is said here.
void GroupLink::failed(const net::Failure& failure, LogLevel, bool was_connected) {
  if (is_stopped()) return;
  const bool bars = failure.is_protocol() || failure.kind == net::Failure::Kind::security;
  if (!was_connected)
    events_.not_reached(name(), failure.nobody_listens, bars ? failure.detail : std::string());
  if (!bars && failure.kind != net::Failure::Kind::rejected) return;
  if (failure.is_protocol()) ++local().traffic.protocol_errors;
  log(limiter_, name() + net::log_key(failure), LogLevel::warn, "group",
      "no connection to '" + name() + "': " + failure.detail);
}

}  // namespace dpwa::group
