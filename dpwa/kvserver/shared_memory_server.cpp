#include "dpwa/kvserver/shared_memory_server.h"

#include <utility>
#include <vector>

#include "dpwa/kvstore/link_limits.h"
#include "dpwa/log/log.h"
#include "dpwa/snapshot/reused_memory.h"

namespace dpwa::kvserver {

using same_host::MemoryExchange;
using same_host::revocation_number;

SharedMemoryServer::SharedMemoryServer(boost::asio::io_context& io, LocalProcess& local)
    : server_(io, local, terms()) {}

same_host::MemoryServer::Terms SharedMemoryServer::terms() {
  same_host::MemoryServer::Terms terms;
  terms.subsystem = "kvserver";
  terms.callers = "workers";
  terms.most_connections = 1024;
  terms.handshake_time = kvstore::connect_time;
  terms.report = [](const net::Failure& failure, const std::string&) {
    if (failure.kind != net::Failure::Kind::accept) return;
    log(LogLevel::warn, "kvserver", "a worker of this host was not accepted: " + failure.detail);
  };
  terms.begins = [this](const auto& worker, const auto& exchange) {
    begin_exchange(worker, exchange);
  };
  terms.ends = [this](const auto& worker, const auto& exchange, const std::string& why) {
    log(LogLevel::debug, "kvserver", "memory of a worker of this host: " + why);
    const auto client = clients_.find(worker);
    const auto connected = connected_.find(worker.name);
    const bool in_use = connected != connected_.end() && connected->second == worker.incarnation;
    if (!in_use && client != clients_.end() && client->second.exchange == exchange)
      end_exchange(worker);
  };
  return terms;
}

void SharedMemoryServer::stop() {
  while (!clients_.empty()) {
    const kvstore::MemberId worker = clients_.begin()->first;
    take_back(worker);
  }
  server_.stop();
}

void SharedMemoryServer::begin_exchange(const kvstore::MemberId& worker, const Exchange& exchange) {
  const auto revocation = MemoryFile::create(1);
  if (!revocation) return exchange->close();
  end_exchange(worker);
  clients_[worker] = {exchange, revocation};
  exchange->share(revocation_number, *revocation);
}

std::optional<Loan> SharedMemoryServer::borrow(const kvstore::MemberId& worker,
                                               const MemoryPlace& place) const {
  const auto client = clients_.find(worker);
  return client == clients_.end() ? std::nullopt : client->second.exchange->borrow(place);
}

std::optional<MemoryPlace> SharedMemoryServer::place_for(const kvstore::MemberId& worker,
                                                         std::span<const std::byte> values) {
  thread_.check();
  const auto client = clients_.find(worker);
  if (client == clients_.end()) return std::nullopt;
  MemoryExchange& exchange = *client->second.exchange;
  if (!exchange.is_shared(revocation_number)) return std::nullopt;
  const auto place = shared_place(values.data());
  if (!place) return std::nullopt;
  if (!exchange.is_shared(place->arena)) {
    exchange.share(place->arena, *shared_arena(place->arena));
    return std::nullopt;
  }
  return MemoryPlace{place->arena, place->offset, values.size(), 0};
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
