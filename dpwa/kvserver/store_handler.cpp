#include "dpwa/kvserver/store_handler.h"

#include <chrono>
#include <utility>

#include "dpwa/kvserver/limits.h"
#include "dpwa/kvstore/link_limits.h"
#include "dpwa/log/log.h"
#include "dpwa/session/outgoing.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/kv_routes.h"

namespace dpwa::kvserver {

namespace asio = boost::asio;
using wire::MessageType;

namespace {

constexpr std::size_t most_traced = 4096;  // requests of a connection that are under way

kvstore::MemberId member_of(const Responder& responder) {
  return {responder.requester().peer, responder.requester().incarnation};
}

}  // namespace

std::vector<wire::TypeBound> StoreHandler::requests(const Requester& requester) const {
  if (requester.peer.empty()) return {};
  const bool is_server = servers_.contains(requester.peer);
  return wire::kv_types(is_server ? wire::KvRoute::server_to_server
                                  : wire::KvRoute::worker_to_server);
}

bool StoreHandler::take_read(const net::Frame& request, Responder& responder) {
  const auto number = wire::decode_kv_read(request.body);
  if (!number) responder.protocol_error(number.error().detail);
  const auto reader = connections_.find(&responder);
  if (number && reader != connections_.end()) reader->second->lent.release(*number);
  return number.has_value();
}

std::optional<kvstore::Message> StoreHandler::decode(net::Frame& request, Responder& responder) {
  auto message = wire::decode_kv(request.header.type, request.body, std::move(request.payload));
  request.body = {};
  if (message) return std::move(*message);
  responder.protocol_error(message.error().detail);
  return std::nullopt;
}

std::optional<bool> StoreHandler::take_at_once(net::Frame& request, Responder& responder) {
  thread_.check();
  if (request.header.type == MessageType::kv_read) return take_read(request, responder);
  const kvstore::MemberId from = member_of(responder);
  const bool begins = !servers_.contains(from.name) && !connections_.contains(&responder);
  // Before anything that the worker of this name uses is touched.
  if (begins && refusal(from)) return std::nullopt;
  auto message = decode(request, responder);
  if (!message) return false;
  arrivals_.try_emplace(&responder, Arrivals{&responder});
  if (!find_memory(responder, *message)) return false;
  if (begins) begin(responder);
  const auto connection = connections_.find(&responder);
  if (own_trace().is_on() && connection != connections_.end())
    trace_arrival(*connection->second, request.header.request_id, *message);
  receive_(from, request.header.request_id, *std::move(message));
  return true;
}

// The worker was refused when its message came; it may not be any more.
asio::awaitable<bool> StoreHandler::answer(net::Frame request, Responder& responder) {
  auto refused = refusal(member_of(responder));
  if (!refused) co_return take_at_once(request, responder).value_or(false);
  const kvstore::Message message(*std::move(refused));
  std::vector<std::byte> frame = wire::encode(message, 0).head;
  co_await responder.send(std::move(frame));
  co_return false;
}

void StoreHandler::trace_arrival(Connection& connection, std::uint64_t tag,
                                 const kvstore::Message& message) {
  const auto* const push = std::get_if<kvstore::Push>(&message);
  const auto* const pull = std::get_if<kvstore::Pull>(&message);
  if (push == nullptr && pull == nullptr) return;
  TracedSpan span{.track = Track::store, .name = push != nullptr ? "push" : "pull"};
  const std::string about = (push != nullptr ? push->slice : pull->slice).key.text() + " of " +
                            connection.responder->requester().peer;
  span.about[about.copy(span.about.data(), TracedSpan::most_about)] = '\0';
  span.begin = std::chrono::steady_clock::now();
  if (connection.traced.size() >= most_traced) return;  // answered over a newer connection
  connection.traced.insert_or_assign(tag, span);
}

void StoreHandler::trace_answer(Connection& connection, std::uint64_t tag,
                                const kvstore::Message& message) {
  const auto* const answer = std::get_if<kvstore::Answer>(&message);
  const auto found = connection.traced.find(tag);
  if (answer == nullptr || found == connection.traced.end()) return;
  if (answer->kind == kvstore::AnswerKind::received) return;  // another answer follows
  found->second.time = std::chrono::steady_clock::now() - found->second.begin;
  own_trace().add(found->second);
  connection.traced.erase(found);
}

void StoreHandler::begin(Responder& responder) {
  close_older(responder.requester());
  const auto begun = std::make_shared<Connection>(responder);
  connections_[&responder] = begun;
  const kvstore::MemberId worker = member_of(responder);
  if (shared_memory_ != nullptr) shared_memory_->begins(worker);
  newest_[worker.name] = begun;
}

// A former process that was frozen would take the way back to the one that replaced it. That one
// may be gone without a word, and its connection still be there.
std::optional<kvstore::Answer> StoreHandler::refusal(const kvstore::MemberId& worker) const {
  auto answer = refuse_ ? refuse_(worker) : std::nullopt;
  const auto newest = newest_.find(worker.name);
  const bool is_former = newest != newest_.end() &&
                         member_of(*newest->second->responder).incarnation > worker.incarnation;
  if (answer || !is_former) return answer;
  answer.emplace();
  answer->kind = kvstore::AnswerKind::name_taken;
  answer->problem = "a later process has taken the place of worker '" + worker.name + "'";
  return answer;
}

// Such a process may have been frozen. It finds out at its next connection.
void StoreHandler::close_older(const Requester& requester) {
  std::vector<Responder*> older;
  for (const auto& [of, connection] : connections_) {
    const Requester& other = of->requester();
    if (other.peer == requester.peer && other.incarnation < requester.incarnation)
      older.push_back(connection->responder);
  }
  for (Responder* each : older) each->close();
}

std::vector<std::pair<kvstore::MemberId, std::uint64_t>> StoreHandler::arrivals() {
  thread_.check();
  std::vector<std::pair<kvstore::MemberId, std::uint64_t>> all;
  for (auto& [key, last] : arrivals_) {
    const std::uint64_t bytes = last.responder->received_bytes();
    const std::uint64_t before = std::exchange(last.bytes, bytes);
    if (bytes > before) all.emplace_back(member_of(*last.responder), bytes - before);
  }
  return all;
}

void StoreHandler::connection_closed(const Responder& responder) {
  thread_.check();
  arrivals_.erase(&responder);
  const auto found = connections_.find(&responder);
  if (found == connections_.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  connections_.erase(found);
  const kvstore::MemberId worker = member_of(responder);
  const auto was_newest = newest_.find(worker.name);
  if (was_newest != newest_.end() && was_newest->second == connection) {
    newest_.erase(was_newest);
    // The first message of this one may have come after that of its successor.
    for (const auto& [of, other] : connections_) {
      if (member_of(*of) == worker) newest_[worker.name] = other;
    }
  }
  // The lent memory may change from now on.
  const auto newest = newest_.find(worker.name);
  const bool again = newest != newest_.end() && member_of(*newest->second->responder) == worker;
  if (shared_memory_ != nullptr && !again) shared_memory_->take_back(worker);
  connection->lent = {};
  if (closed_ && !again) closed_(worker);
}

bool StoreHandler::find_memory(Responder& responder, kvstore::Message& message) const {
  auto* push = std::get_if<kvstore::Push>(&message);
  if (push == nullptr || !push->place) return true;
  auto lent = shared_memory_ != nullptr ? shared_memory_->borrow(member_of(responder), *push->place)
                                        : std::nullopt;
  if (!lent || lent->bytes.empty()) {
    responder.protocol_error("a push names memory that was not shared");
    return false;
  }
  push->lent = *std::move(lent);
  push->place.reset();
  return true;
}

void StoreHandler::lend(Connection& connection, kvstore::Message& message) const {
  auto* answer = std::get_if<kvstore::Answer>(&message);
  if (shared_memory_ == nullptr || answer == nullptr || !answer->values) return;
  const std::size_t bytes = answer->values->size();
  if (connection.lent.bytes() + bytes > most_lent_to_worker) return;
  answer->place = shared_memory_->place_for(member_of(*connection.responder), *answer->values);
  if (!answer->place) return;
  const TimePoint until = std::chrono::steady_clock::now() + kvstore::write_time_of_server;
  answer->place->mark = connection.lent.lend(std::exchange(answer->values, nullptr), bytes, until);
}

void StoreHandler::end_overdue(TimePoint now) {
  thread_.check();
  std::vector<Responder*> overdue;
  for (const auto& [of, connection] : connections_) {
    if (connection->lent.overdue(now)) overdue.push_back(connection->responder);
  }
  for (Responder* each : overdue) {
    log(LogLevel::warn, "kvserver",
        "worker '" + each->requester().peer + "' has not read memory of this server within " +
            std::to_string(kvstore::write_time_of_server / std::chrono::seconds(1)) +
            " s: connection closed");
    each->close();
  }
}

void StoreHandler::send(const std::string& worker, std::uint64_t tag, kvstore::Message message) {
  thread_.check();
  const auto found = newest_.find(worker);
  if (found == newest_.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  trace_answer(*connection, tag, message);
  lend(*connection, message);
  Responder& responder = *connection->responder;
  responder.outgoing().add(std::move(message), tag);
  if (responder.outgoing().bytes() > most_queued_for_worker) return responder.close();
  responder.begin_write();
}

}  // namespace dpwa::kvserver
