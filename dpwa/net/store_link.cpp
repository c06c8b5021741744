#include "dpwa/net/store_link.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "dpwa/base/on_exit.h"
#include "dpwa/kvstore/link_limits.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/coroutine.h"

namespace dpwa::net {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

// A connection that ends sooner may have been closed by a process that does not want it.
constexpr Duration lasts = std::chrono::milliseconds(500);

}  // namespace

StoreLink::StoreLink(asio::io_context& io, LocalProcess& local, Options options)
    : io_(io),
      local_(&local),
      options_(std::move(options)),
      wake_(io),
      again_(io),
      over_(io),
      random_(local.incarnation),
      grace_(SteadyClock::now()) {}

void StoreLink::start() {
  asio::co_spawn(io_, run(), rethrow);
}

void StoreLink::stop() {
  thread_.check();
  stopped_ = true;
  close();
  again_.cancel();
}

void StoreLink::close() {
  if (connection_) connection_->close();
  wake_.cancel();
}

void StoreLink::reconnect_as(LocalProcess& local) {
  local_ = &local;
  close();
}

SocketProgress StoreLink::progress() const {
  if (!connected_) return {};
  return progress_of(connection_->stream().socket().native_handle());
}

asio::awaitable<IoResult<wire::Welcome>> StoreLink::connect(Connection& connection) {
  const Deadline end(io_, SteadyClock::now() + kvstore::connect_time, [&] { connection.close(); });
  constexpr std::uint32_t hello_id = 1;
  auto welcome = co_await open_connection(connection, *local_, options_.server, hello_id);
  if (!welcome && end.expired()) welcome = Failure(Failure::Kind::timed_out, "no answer in time");
  if (!welcome && welcome.error().kind == Failure::Kind::security)
    ++local_->traffic.security_failures;
  co_return welcome;
}

asio::awaitable<void> StoreLink::run() {
  const auto self = shared_from_this();
  unsigned failures = 0;  // in a row
  while (!stopped_) {
    const Incoming::Target target = [this](auto type, auto head, auto bytes) {
      return target_of(type, head, bytes);
    };
    connection_ = std::make_shared<Connection>(io_, target);
    const auto connection = connection_;
    const auto welcome = co_await connect(*connection);
    const bool made = welcome && !stopped_;
    const TimePoint begun = SteadyClock::now();
    if (made) {
      failures = 0;
      grace_.connected();
      connected_ = writing_ = true;
      connected(*welcome);
      asio::co_spawn(io_, write(connection), rethrow);
      const Failure failure = co_await converse(connection);
      connected_ = false;
      failed(failure, grace_.level_of(failure, SteadyClock::now()), true);
      close();
      while (writing_) {
        over_.expires_at(TimePoint::max());
        co_await over_.async_wait(as_result);
      }
      disconnected();
    } else if (!welcome) {
      const Failure& failure = welcome.error();
      failed(failure, grace_.level_of(failure, SteadyClock::now()), false);
    }
    connection->close();
    if (stopped_) break;
    const bool lasted = made && SteadyClock::now() - begun >= lasts;
    if (lasted && options_.redials_at_once) continue;
    again_.expires_after(kvstore::between_connects.delay(++failures, random_));
    co_await again_.async_wait(as_result);
  }
}

asio::awaitable<Failure> StoreLink::converse(std::shared_ptr<Connection> connection) {
  const Expected expected{std::span(options_.accepted)};
  if (!options_.accepted.empty()) connection->incoming().read_ahead(Connection::store_ahead_bytes);
  while (connection->is_open()) {
    auto frame = co_await connection->receive(expected);
    if (!frame) co_return frame.error();
    auto failure = received(std::move(*frame));
    if (failure) co_return std::move(*failure);
  }
  Failure closed(asio::error::operation_aborted);
  co_return closed;
}

asio::awaitable<void> StoreLink::write(std::shared_ptr<Connection> connection) {
  const auto self = shared_from_this();
  const OnExit over([this] {
    writing_ = false;
    over_.cancel();
  });
  WriteRules rules;
  rules.least_time = options_.write_time;
  rules.before = [this] { before_staging(); };
  rules.form = [this](const kvstore::Message& message) { return form_of(message); };
  rules.staged = [this] { staged(); };
  rules.after = [this](bool whole) { after_write(whole); };
  rules.late = [this](std::size_t bytes, Duration time) { write_is_late(bytes, time); };
  co_await write_waiting(connection->stream(), outgoing_, wake_, rules);
}

}  // namespace dpwa::net
