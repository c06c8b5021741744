#include "dpwa/kvserver/store_handler.h"

#include <chrono>
#include <span>
#include <utility>

#include "dpwa/kvserver/limits.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/wire/kv_messages.h"

namespace dpwa::kvserver {

namespace asio = boost::asio;
using wire::MessageType;

namespace {

constexpr std::initializer_list<MessageType> of_workers{
    MessageType::kv_init,   MessageType::kv_push,      MessageType::kv_pull,
    MessageType::kv_beat,   MessageType::kv_promise,   MessageType::kv_vote,
    MessageType::kv_epoch,  MessageType::kv_ask_epoch, MessageType::kv_state,
    MessageType::kv_barrier};
constexpr std::initializer_list<MessageType> of_servers{
    MessageType::kv_forward, MessageType::kv_sync,    MessageType::kv_copy,
    MessageType::kv_stored,  MessageType::kv_want,    MessageType::kv_beat,
    MessageType::kv_ballot,  MessageType::kv_promise, MessageType::kv_proposal,
    MessageType::kv_vote,    MessageType::kv_epoch,   MessageType::kv_ask_epoch};

}  // namespace

std::vector<wire::TypeBound> StoreHandler::requests(const Requester& requester) const {
  std::vector<wire::TypeBound> bounds;
  if (requester.peer.empty()) return bounds;
  for (const MessageType type : servers_.contains(requester.peer) ? of_servers : of_workers) {
    bounds.push_back({type, wire::max_kv_body_bytes(type)});
  }
  return bounds;
}

asio::awaitable<bool> StoreHandler::answer(net::Frame request, Responder& responder) {
  const Requester& requester = responder.requester();
  auto message = wire::decode_kv(request.header.type, request.body);
  if (!message) {
    responder.protocol_error(message.error().detail);
    co_return false;
  }
  request.body = {};
  std::shared_ptr<Connection> begun;
  if (!servers_.contains(requester.peer) && !connections_.contains(&responder)) {
    begun = std::make_shared<Connection>(responder);
    connections_[&responder] = begun;
    newest_[requester.peer] = begun;
  }
  receive_({requester.peer, requester.incarnation}, request.header.request_id, std::move(*message));
  if (!begun) co_return true;
  co_await write(begun);
  co_return false;
}

asio::awaitable<void> StoreHandler::write(std::shared_ptr<Connection> connection) {
  while (!connection->ended) {
    const std::unique_ptr<Outbox::Item> item = connection->outbox.next();
    if (!item) {
      connection->wake.expires_at(TimePoint::max());
      co_await connection->wake.async_wait(net::as_result);
      continue;
    }
    Responder& responder = *connection->responder;
    const TimePoint until = std::chrono::steady_clock::now() + write_time;
    const net::Deadline deadline(responder.executor(), until, [&] { responder.close(); });
    co_await responder.begin_reply();
    const auto buffers = item->buffers();
    const std::span<const asio::const_buffer> parts(buffers);
    const bool written = co_await responder.write(parts);
    responder.end_reply();
    if (!written) co_return;
  }
}

void StoreHandler::connection_closed(const Responder& responder) {
  const auto found = connections_.find(&responder);
  if (found == connections_.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  connections_.erase(found);
  std::erase_if(newest_, [&](const auto& entry) { return entry.second == connection; });
  connection->ended = true;
  connection->outbox.clear();
  connection->wake.cancel();
}

void StoreHandler::send(const std::string& worker, std::uint64_t tag, kvstore::Message message) {
  const auto found = newest_.find(worker);
  if (found == newest_.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  connection->outbox.add(std::move(message), tag);
  if (connection->outbox.bytes() > most_queued_for_worker) return connection->responder->close();
  connection->wake.cancel();
}

}  // namespace dpwa::kvserver
