#include "test/support/store_double.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/net/connection.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/messages.h"

namespace dpwa::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using SteadyClock = std::chrono::steady_clock;

namespace {

std::vector<wire::TypeBound> all_types() {
  std::vector<wire::TypeBound> bounds;
  for (auto type = wire::first_kv_type; type <= wire::last_kv_type;
       type = static_cast<wire::MessageType>(static_cast<unsigned>(type) + 1))
    bounds.push_back({type, wire::max_kv_body_bytes(type)});
  return bounds;
}

kvstore::ServerEngineOptions server_options(const kvstore::ShardRules& rules,
                                            std::size_t min_workers) {
  kvstore::ServerEngineOptions options;
  options.shard = rules;
  options.watch.min_workers = min_workers;
  options.watch.silent_after = std::chrono::seconds(20);  // longer than any test waits
  return options;
}

}  // namespace

class StoreDouble::Impl {
 public:
  Impl(const kvstore::ShardRules& rules, std::size_t min_workers)
      : acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        ticks_(io_),
        engine_(server_options(rules, min_workers), {"s1", 1}, {"s1"}, SteadyClock::now()) {
    asio::co_spawn(io_, accept(), net::rethrow);
    asio::post(io_, [this] { tick(); });
    thread_ = std::thread([this] { net::run_io(io_); });
  }
  ~Impl() {
    asio::post(io_, [this] {
      stopped_ = true;
      acceptor_.close();
      ticks_.cancel();
      for (auto& [name, link] : links_) end(*link);
    });
    thread_.join();
  }

  PeerAddress address() const { return {"s1", {"127.0.0.1"}, acceptor_.local_endpoint().port()}; }
  void cut() {
    asio::post(io_, [this] {
      for (auto& [name, link] : links_) end(*link);
    });
  }
  std::vector<std::string> asked() const {
    const MutexLock lock(mutex_);
    return asked_;
  }

 private:
  struct Link {
    explicit Link(tcp::socket socket)
        : connection(std::move(socket)), more(connection.stream().get_executor()) {}
    net::Connection connection;
    session::Outgoing outgoing;
    asio::steady_timer more;
  };

  static void end(Link& link) {
    link.connection.close();
    link.more.cancel();
  }

  asio::awaitable<void> accept() {
    while (!stopped_) {
      auto [error, socket] = co_await acceptor_.async_accept(net::as_result);
      if (error) co_return;
      auto link = std::make_shared<Link>(std::move(socket));
      asio::co_spawn(io_, serve(std::move(link)), net::rethrow);
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<Link> link) {
    const net::Expected first(net::types(wire::MessageType::hello));
    const auto frame = co_await link->connection.receive(first);
    if (!frame) co_return;
    const auto hello = wire::decode_hello(frame->body);
    if (!hello) co_return;
    const kvstore::MemberId worker{hello->node, hello->incarnation};
    wire::Welcome welcome;
    welcome.node = "s1";
    welcome.incarnation = 1;
    auto bytes = wire::encode(welcome, frame->header.request_id);
    co_await link->connection.send(std::move(bytes));
    links_[worker.name] = link;
    asio::co_spawn(io_, write(link), net::rethrow);
    const auto bounds = all_types();
    const net::Expected accepted{std::span<const wire::TypeBound>(bounds)};
    while (!stopped_) {
      auto next = co_await link->connection.receive(accepted);
      if (!next) break;
      auto message = wire::decode_kv(next->header.type, next->body, std::move(next->payload));
      if (!message) break;
      note(*message);
      engine_.receive(worker, next->header.request_id, std::move(*message), SteadyClock::now());
      pump();
    }
    end(*link);
    if (links_[worker.name] == link) links_.erase(worker.name);
  }

  asio::awaitable<void> write(std::shared_ptr<Link> link) {
    const net::WriteRules rules{std::chrono::seconds(10)};
    co_await net::write_waiting(link->connection.stream(), link->outgoing, link->more, rules);
  }

  void note(const kvstore::Message& message) {
    const MutexLock lock(mutex_);
    if (const auto* push = std::get_if<kvstore::Push>(&message))
      asked_.push_back("push " + push->slice.key.text());
    if (const auto* pull = std::get_if<kvstore::Pull>(&message))
      asked_.push_back("pull " + pull->slice.key.text());
  }

  void pump() {
    for (kvstore::Outgoing& each : engine_.take()) {
      const auto link = links_.find(each.to);
      if (link == links_.end()) continue;
      link->second->outgoing.add(std::move(each.message), each.tag);
      link->second->more.cancel();
    }
  }

  void tick() {
    if (stopped_) return;
    engine_.tick(SteadyClock::now());
    pump();
    ticks_.expires_after(std::chrono::milliseconds(20));
    ticks_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) tick();
    });
  }

  mutable Mutex mutex_;
  std::vector<std::string> asked_ DPWA_GUARDED_BY(mutex_);
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer ticks_;
  kvstore::ServerEngine engine_;
  std::map<std::string, std::shared_ptr<Link>> links_;
  bool stopped_ = false;
  std::thread thread_;
};

StoreDouble::StoreDouble(const kvstore::ShardRules& rules, std::size_t min_workers)
    : impl_(std::make_unique<Impl>(rules, min_workers)) {}
StoreDouble::~StoreDouble() = default;

PeerAddress StoreDouble::address() const {
  return impl_->address();
}

void StoreDouble::cut() {
  impl_->cut();
}

std::vector<std::string> StoreDouble::asked() const {
  return impl_->asked();
}

}  // namespace dpwa::test
