#include "dpwa/kvserver/link.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "dpwa/kvserver/limits.h"
#include "dpwa/kvstore/link_limits.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/frame_io.h"
#include "dpwa/net/kv_frame.h"

namespace dpwa::kvserver {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

Link::Link(asio::io_context& io, LocalProcess& local, PeerAddress address,
           std::string congestion_control, Events events)
    : local_(local),
      address_(std::move(address)),
      congestion_control_(std::move(congestion_control)),
      events_(std::move(events)),
      stream_(io),
      wake_(io),
      grace_(SteadyClock::now()) {}

void Link::start() {
  auto self = shared_from_this();
  asio::co_spawn(stream_.get_executor(), run(), [self](std::exception_ptr failure) {
    self->hang_up();
    net::rethrow(std::move(failure));
  });
}

void Link::send(kvstore::Message message, std::uint64_t tag) {
  thread_.check();
  if (!connected_) return;
  outbox_.add(std::move(message), tag);
  if (outbox_.bytes() > most_queued_for_server) return hang_up();
  wake_.cancel();
}

void Link::stop() {
  thread_.check();
  stopped_ = true;
  hang_up();
}

void Link::hang_up() {
  connected_ = false;
  stream_.close();
  outbox_.clear();
  wake_.cancel();
}

asio::awaitable<void> Link::run() {
  Duration pause = kvstore::first_pause;
  while (!stopped_) {
    const bool connected = co_await connect();
    if (stopped_) break;
    if (connected) {
      pause = kvstore::first_pause;
      auto self = shared_from_this();
      asio::co_spawn(stream_.get_executor(), read(),
                     [self](std::exception_ptr failure) { net::rethrow(std::move(failure)); });
      co_await write();
      hang_up();
      // A process that has ended refuses the next connection, or its successor has another
      // incarnation.
      continue;
    }
    wake_.expires_after(pause);
    co_await wake_.async_wait(net::as_result);
    pause = std::min<Duration>(2 * pause, kvstore::longest_pause);
  }
}

asio::awaitable<bool> Link::connect() {
  const TimePoint until = SteadyClock::now() + kvstore::connect_time;
  const net::Deadline deadline(stream_.get_executor(), until, [this] { stream_.close(); });
  const auto welcome =
      co_await net::open_connection(stream_, local_, address_, congestion_control_, 1);
  if (!welcome) {
    hang_up();
    const net::Failure& failure = welcome.error();
    if (failure.kind == net::Failure::Kind::security) ++local_.traffic.security_failures;
    if (failure.nobody_listens && incarnation_ != 0) events_.lost({address_.name, incarnation_});
    not_reached(failure);
    co_return false;
  }
  if (incarnation_ != 0 && incarnation_ != welcome->incarnation) {
    events_.lost({address_.name, incarnation_});
  }
  incarnation_ = welcome->incarnation;
  grace_.connected();
  connected_ = true;
  ++connections_;
  log(LogLevel::info, "kvserver", "connected to server '" + address_.name + "'");
  co_return true;
}

void Link::not_reached(const net::Failure& failure) {
  if (stopped_ || expects_end_) return;
  const TimePoint now = SteadyClock::now();
  const LogLevel level = grace_.level_of(failure, now);
  const bool early = level == LogLevel::info;
  const auto held_back = limiter_.pass((early ? "early " : "") + net::log_key(failure), now);
  if (!held_back) return;
  log(level, "kvserver",
      (early ? "not there yet: server '" : "cannot reach server '") + address_.name +
          "': " + failure.detail + since_words(*held_back));
}

asio::awaitable<void> Link::write() {
  Outbox::Batch batch;
  while (connected_) {
    if (!outbox_.next(batch)) {
      wake_.expires_at(TimePoint::max());
      co_await wake_.async_wait(net::as_result);
      continue;
    }
    const auto buffers = net::buffers_of(batch.frames);
    const std::span<const asio::const_buffer> parts(buffers);
    const TimePoint until =
        SteadyClock::now() +
        kvstore::time_to_write(kvstore::write_time_of_server, batch.frames.bytes());
    const net::Deadline deadline(stream_.get_executor(), until, [this] { stream_.close(); });
    const auto broken = co_await stream_.write_all(parts);
    if (broken) co_return;
  }
}

asio::awaitable<void> Link::read() {
  const kvstore::MemberId server{address_.name, incarnation_};
  const std::uint64_t connection = connections_;
  while (connected_ && connection == connections_) {
    auto frame = co_await net::read_frame(stream_, events_.accepted);
    if (!frame) {
      if (frame.error().is_protocol()) protocol_error(frame.error().detail);
      break;
    }
    auto message = wire::decode_kv(frame->header.type, frame->body, std::move(frame->payload));
    if (!message) {
      protocol_error(message.error().detail);
      break;
    }
    events_.received(server, frame->header.request_id, std::move(*message));
  }
  if (connection == connections_) hang_up();
}

void Link::protocol_error(const std::string& what) {
  ++local_.traffic.protocol_errors;
  log(LogLevel::warn, "kvserver", "server '" + address_.name + "': connection closed: " + what);
}

}  // namespace dpwa::kvserver
