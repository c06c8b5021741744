#include "dpwa/kvserver/shared_memory_server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <utility>

#include "dpwa/ipc/unix_socket.h"
#include "dpwa/kvstore/link_limits.h"
#include "dpwa/log/log.h"
#include "dpwa/net/admission.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/reused_memory.h"
#include "dpwa/wire/messages.h"

namespace dpwa::kvserver {

namespace asio = boost::asio;
using same_host::MemoryExchange;
using same_host::revocation_number;

namespace {

constexpr std::size_t most_connections = 1024;

}  // namespace

SharedMemoryServer::SharedMemoryServer(asio::io_context& io, LocalProcess& local)
    : io_(io),
      local_(local),
      accepts_(
          io, [this](Socket socket) { admit(std::move(socket)); },
          [](const std::string& error) {
            log(LogLevel::warn, "kvserver", "a worker of this host was not accepted: " + error);
          }) {}

bool SharedMemoryServer::listen() {
  offer_ = same_host::offer_socket(accepts_.acceptor(), "kvserver", "workers");
  return !offer_.empty();
}

void SharedMemoryServer::serve() {
  if (!offer_.empty()) accepts_.run();
}

void SharedMemoryServer::stop() {
  thread_.check();
  stopped_ = true;
  if (accepts_.acceptor().is_open()) ipc::stop_listening(accepts_.acceptor().native_handle());
  accepts_.stop();
  while (!clients_.empty()) {
    const kvstore::MemberId worker = clients_.begin()->first;
    take_back(worker);
  }
  for (const auto& each : exchanges_) {
    if (const auto exchange = each.lock()) exchange->close();
  }
}

void SharedMemoryServer::admit(Socket socket) {
  thread_.check();
  std::erase_if(exchanges_, [](const auto& each) { return each.expired(); });
  const bool ours = ipc::admits(socket.native_handle());
  if (!ours || stopped_ || exchanges_.size() >= most_connections) {
    ++local_.traffic.connections_refused;
    return;  // the socket closes here
  }
  auto exchange = std::make_shared<MemoryExchange>(same_host::FrameSocket(std::move(socket)));
  exchanges_.push_back(exchange);
  asio::co_spawn(io_, receive(exchange), net::rethrow);
}

asio::awaitable<void> SharedMemoryServer::receive(std::shared_ptr<MemoryExchange> exchange) {
  kvstore::MemberId worker;
  {
    const TimePoint until = std::chrono::steady_clock::now() + kvstore::connect_time;
    const net::Deadline deadline(io_.get_executor(), until, [&] { exchange->close(); });
    constexpr auto expected = net::types(wire::MessageType::hello);
    const auto frame = co_await exchange->read(expected);
    if (!frame) co_return exchange->close();
    const auto hello = wire::decode_hello(frame->body);
    if (!hello || hello->role != wire::Role::node || examine_hello(*hello, local_)) {
      ++local_.traffic.connections_refused;
      co_return exchange->close();
    }
    const auto revocation = MemoryFile::create(1);
    if (!revocation || stopped_) co_return exchange->close();
    worker = {hello->node, hello->incarnation};
    end_exchange(worker);
    clients_[worker] = {exchange, revocation};
    exchange->share(revocation_number, *revocation, 1);
  }
  const std::string why = co_await exchange->run();
  log(LogLevel::debug, "kvserver", "memory of a worker of this host: " + why);
  const auto client = clients_.find(worker);
  const auto connected = connected_.find(worker.name);
  const bool in_use = connected != connected_.end() && connected->second == worker.incarnation;
  if (!in_use && client != clients_.end() && client->second.exchange == exchange)
    end_exchange(worker);
}

std::optional<SharedMemoryServer::Borrowed> SharedMemoryServer::borrow(
    const kvstore::MemberId& worker, const kvstore::MemoryPlace& place) const {
  const auto client = clients_.find(worker);
  if (client == clients_.end()) return std::nullopt;
  const auto& exchange = client->second.exchange;
  const auto bytes = exchange->bytes(place.memory, place.offset, place.bytes);
  if (bytes.empty()) return std::nullopt;
  return Borrowed{bytes, {exchange->memory(place.memory), place.mark}};
}

std::optional<kvstore::MemoryPlace> SharedMemoryServer::place_for(
    const kvstore::MemberId& worker, std::span<const std::byte> values) {
  thread_.check();
  const auto client = clients_.find(worker);
  if (client == clients_.end()) return std::nullopt;
  MemoryExchange& exchange = *client->second.exchange;
  if (!exchange.is_shared(revocation_number)) return std::nullopt;
  const auto place = shared_place(values.data());
  if (!place) return std::nullopt;
  if (!exchange.is_shared(place->arena)) {
    if (!exchange.is_sharing(place->arena))
      exchange.share(place->arena, *shared_arena(place->arena), arena_bytes);
    return std::nullopt;
  }
  return kvstore::MemoryPlace{place->arena, place->offset, values.size(), 0};
}

void SharedMemoryServer::begins(const kvstore::MemberId& worker) {
  thread_.check();
  connected_[worker.name] = worker.incarnation;
  std::vector<kvstore::MemberId> others;
  for (const auto& [id, client] : clients_) {
    if (id.name == worker.name && id != worker) others.push_back(id);
  }
  for (const kvstore::MemberId& other : others) end_exchange(other);
}

void SharedMemoryServer::take_back(const kvstore::MemberId& worker) {
  thread_.check();
  const auto connected = connected_.find(worker.name);
  if (connected != connected_.end() && connected->second == worker.incarnation)
    connected_.erase(connected);
  end_exchange(worker);
}

void SharedMemoryServer::end_exchange(const kvstore::MemberId& worker) {
  const auto client = clients_.find(worker);
  if (client == clients_.end()) return;
  client->second.revocation->begin_write();
  client->second.revocation->end_write();
  client->second.exchange->close();
  clients_.erase(client);
}

}  // namespace dpwa::kvserver
