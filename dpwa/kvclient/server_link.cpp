#include "dpwa/kvclient/server_link.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

#include "dpwa/kvstore/link_limits.h"
#include "dpwa/log/log.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/session/outgoing.h"
#include "dpwa/snapshot/memory_file.h"
#include "dpwa/snapshot/reused_memory.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/kv_routes.h"

namespace dpwa::kvclient {

namespace asio = boost::asio;
using session::Outgoing;
using SteadyClock = std::chrono::steady_clock;

namespace {

// The size of the values that a push carries, wherever they are.
std::size_t pushed_bytes(const kvstore::Message& message) {
  const auto* push = std::get_if<kvstore::Push>(&message);
  return push == nullptr ? 0 : push->content().size();
}

// A push of this slice up to this step.
bool is_push(const kvstore::Message& message, const kvstore::SliceId& slice, std::uint64_t step) {
  const auto* push = std::get_if<kvstore::Push>(&message);
  return push != nullptr && push->step <= step && push->slice == slice;
}

}  // namespace

ServerLink::ServerLink(asio::io_context& io, LocalProcess& local, PeerAddress server,
                       bool same_host, LinkEvents& events)
    : StoreLink(io, local,
                {std::move(server), wire::kv_types(wire::KvRoute::server_to_worker),
                 kvstore::write_time_of_worker}),
      same_host_(same_host),
      events_(events) {}

void ServerLink::send(std::uint64_t tag, kvstore::Message message) {
  thread_.check();
  if (is_connected() || !Outgoing::is_urgent(message)) outgoing_.put(std::move(message), tag);
  wake();
}

void ServerLink::drop(const kvstore::SliceId& slice, std::uint64_t step) {
  outgoing_.drop_if([&](const kvstore::Message& message) { return is_push(message, slice, step); });
}

void ServerLink::drop_requests() {
  outgoing_.drop_if([](const kvstore::Message&) { return true; });
}

bool ServerLink::writes(const kvstore::SliceId& slice, std::uint64_t step) const {
  return std::ranges::any_of(outgoing_.staged(), [&](const Outgoing::Item& each) {
    return is_push(each.message, slice, step);
  });
}

void ServerLink::reconnect_as(LocalProcess& local) {
  turned_away_ = "connects again";
  StoreLink::reconnect_as(local);
}

void ServerLink::break_off(TimePoint since) {
  if (!outgoing_.staged().empty() && began_ < since) close();
}

void ServerLink::look() {
  const auto before = std::exchange(progress_, progress());
  // Not both: while the server sends nothing more of a reply, the kernel of its host may go on
  // acknowledging the beats of this worker.
  moves_ = reading_values_ ? progress_.received != before.received
                           : progress_.acknowledged != before.acknowledged;
}

void ServerLink::pass(Duration time, Duration longest_silence) {
  if (!is_connected()) return;
  if (in_transfer() && moves_) silence_ = {};
  const bool was_asked = silence_ >= longest_silence / 3;
  silence_ += time;
  if (!was_asked && silence_ >= longest_silence / 3) send(0, kvstore::AskEpoch{});
  if (silence_ < longest_silence) return;
  silence_ = {};
  end("it has sent nothing for " + std::to_string(longest_silence / std::chrono::milliseconds(1)) +
      " ms, although it was asked");
}

void ServerLink::stop_landing() {
  if (!landing_.empty()) close();
}

void ServerLink::end(std::string why) {
  turned_away_ = std::move(why);
  tell(turned_away_, LogLevel::warn);
  rejected_ = false;
  close();
}

// Once for each problem, and again when it is no longer an early one.
void ServerLink::tell(const std::string& problem, LogLevel level) {
  const bool told = problem == problem_ && told_level_ >= level;
  if (!told && !is_stopped()) {
    log(level, "kvstore",
        "server '" + name() + "'" + (level == LogLevel::info ? " is not there yet: " : ": ") +
            problem);
  }
  problem_ = problem;
  told_level_ = told ? told_level_ : level;
}

void ServerLink::failed(const net::Failure& failure, LogLevel level, bool was_connected) {
  if (was_connected && !turned_away_.empty() && !failure.is_protocol()) {
    problem_ = turned_away_;
    return;
  }
  tell(failure.detail, level);
  rejected_ = failure.kind == net::Failure::Kind::rejected;
}

void ServerLink::connected(const wire::Welcome& welcome) {
  problem_.clear();
  rejected_ = false;
  turned_away_.clear();
  silence_ = {};
  process_ = {name(), welcome.incarnation};
  open_door(welcome.same_host);
  events_.connected(name());
}

void ServerLink::disconnected() {
  landing_ = {};
  reading_values_ = false;
  if (exchange_) exchange_->close();
  exchange_.reset();
  outgoing_.drop_urgent();
}

std::span<std::byte> ServerLink::target_of(wire::MessageType type, std::span<const std::byte> head,
                                           std::uint64_t bytes) {
  reading_values_ = true;
  if (type != wire::MessageType::kv_answer) return {};
  const auto decoded = wire::decode_kv_head(type, head);
  const auto* answer = decoded ? std::get_if<kvstore::Answer>(&decoded->message) : nullptr;
  const auto place = answer != nullptr ? events_.target_of(*answer) : std::span<std::byte>();
  landing_ = place.size() == bytes ? place : std::span<std::byte>();
  return landing_;
}

std::optional<net::Failure> ServerLink::received(net::Frame frame) {
  const auto landed = std::exchange(landing_, {});
  reading_values_ = false;
  silence_ = {};
  auto message = landed.empty()
                     ? wire::decode_kv(frame.header.type, frame.body, std::move(frame.payload))
                     : wire::decode_landed(frame.body, landed);
  if (!message) return message.error();
  if (auto* answer = std::get_if<kvstore::Answer>(&*message)) {
    if (is_refusal(answer->kind)) turned_away_ = answer->problem;
    std::uint64_t answer_bytes = landed.size();
    if (answer->values) answer_bytes += answer->values->size();
    if (answer->place) answer_bytes += answer->place->bytes;
    std::string why = wrong_length(*answer, !landed.empty());
    if (why.empty() && answer->place) why = take_values(*answer);
    if (!why.empty()) return net::Failure(net::Failure::Kind::protocol, std::move(why));
    traffic_.received += answer_bytes;
  }
  events_.arrived(process_, frame.header.request_id, std::move(*message));
  return std::nullopt;
}

void ServerLink::share(const AlignedBuffer& memory) {
  thread_.check();
  const auto number = static_cast<std::uint32_t>(memories_.size());
  memories_.push_back(memory);
  if (exchange_) exchange_->share(number, *memory.file());
}

// The server tells only its workers the name of the socket, and the kernel states the user at the
// other end.
void ServerLink::open_door(const std::string& offer_text) {
  read_ = told_ = 0;
  const auto offer = same_host_ ? same_host::offer_of_this_host(offer_text) : std::nullopt;
  if (!offer) return;
  auto called = same_host::MemoryExchange::call(io_, *offer, local());
  if (!called) return;
  exchange_ = std::move(*called);
  for (std::uint32_t number = 0; number < memories_.size(); ++number)
    exchange_->share(number, *memories_[number].file());
  asio::co_spawn(io_, exchange_memory(exchange_), net::rethrow);
}

asio::awaitable<void> ServerLink::exchange_memory(
    std::shared_ptr<same_host::MemoryExchange> exchange) {
  const auto welcome = co_await exchange->welcomed();
  if (welcome) co_await exchange->run();
}

std::string ServerLink::wrong_length(const kvstore::Answer& answer, bool landed) const {
  const auto expected = events_.bytes_of(answer.slice);
  if (landed || !expected) return {};
  const bool has_values = answer.values || answer.place;
  if (!has_values && answer.kind != kvstore::AnswerKind::value) return {};
  std::uint64_t bytes = answer.values ? answer.values->size() : 0;
  if (answer.place) bytes = answer.place->bytes;
  if (bytes == *expected) return {};
  return "sent a value of " + std::to_string(bytes) + " bytes for slice " +
         std::to_string(answer.slice.index) + " of key " + answer.slice.key.text() +
         ", which has " + std::to_string(*expected);
}

std::string ServerLink::take_values(kvstore::Answer& answer) {
  const MemoryPlace place = *std::exchange(answer.place, std::nullopt);
  const auto lent = exchange_ ? exchange_->borrow(place) : std::nullopt;
  if (!lent || lent->bytes.empty()) return "an answer names memory that was not shared";
  const auto target = events_.target_of(answer);
  if (target.size() == lent->bytes.size()) {
    std::memcpy(target.data(), lent->bytes.data(), target.size());
    answer.values = std::make_shared<kvstore::Bytes>();  // they are in their target already
  } else {
    answer.values = std::make_shared<kvstore::Bytes>(copy_of(lent->bytes));
  }
  if (!lent->intact()) return "took its memory back while it was read";
  read_ = place.mark;
  return {};
}

std::optional<kvstore::Message> ServerLink::form_of(const kvstore::Message& message) {
  const auto* push = std::get_if<kvstore::Push>(&message);
  if (push == nullptr || push->lent.bytes.size() < least_reused_bytes || !exchange_)
    return std::nullopt;
  const auto lent = push->lent.bytes;
  for (std::uint32_t number = 0; number < memories_.size(); ++number) {
    const auto bytes = memories_[number].bytes();
    const std::less_equal<const std::byte*> before;
    if (!before(bytes.data(), lent.data()) ||
        !before(lent.data() + lent.size(), bytes.data() + bytes.size()))
      continue;
    if (!exchange_->is_shared(number)) return std::nullopt;
    kvstore::Push other = *push;
    const auto offset = static_cast<std::uint64_t>(lent.data() - bytes.data());
    other.place = MemoryPlace{number, offset, lent.size(), memories_[number].file()->generation()};
    other.lent = {};
    return other;
  }
  return std::nullopt;
}

void ServerLink::before_staging() {
  began_ = SteadyClock::now();
  if (read_ > told_) outgoing_.add(wire::encode_kv_read(read_));
  told_ = read_;
}

// Before the write, because the answers may be handled before its end is.
void ServerLink::staged() {
  staged_values_ = 0;
  for (const auto& each : outgoing_.staged()) staged_values_ += pushed_bytes(each.message);
  traffic_.sent += staged_values_;
}

void ServerLink::after_write(bool whole) {
  if (!whole) traffic_.sent -= staged_values_;
  events_.written();
}

void ServerLink::write_is_late(std::size_t bytes, Duration time) {
  end("it has not taken " + std::to_string(bytes) + " bytes within " +
      std::to_string(time / std::chrono::seconds(1)) + " s");
}

}  // namespace dpwa::kvclient
