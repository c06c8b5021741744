#include "dpwa/kvclient/server_link.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "dpwa/base/on_exit.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/kvstore/link_limits.h"
#include "dpwa/log/log.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/kv_frame.h"
#include "dpwa/net/read_ahead.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/memory_file.h"
#include "dpwa/snapshot/reused_memory.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/kv_routes.h"

namespace dpwa::kvclient {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr std::uint32_t hello_id = 1;

// The size of the values that a push carries, wherever they are.
std::size_t pushed_bytes(const kvstore::Message& message) {
  const auto* push = std::get_if<kvstore::Push>(&message);
  return push == nullptr ? 0 : push->content().size();
}

}  // namespace

ServerLink::ServerLink(asio::io_context& io, LocalProcess& local, PeerAddress server,
                       std::string congestion_control, bool same_host, LinkEvents& events)
    : io_(io),
      local_(&local),
      server_(std::move(server)),
      congestion_control_(std::move(congestion_control)),
      same_host_(same_host),
      events_(events),
      more_(io),
      again_(io),
      over_(io),
      back_off_(kvstore::first_pause),
      random_(static_cast<std::minstd_rand::result_type>(local.incarnation)),
      grace_(SteadyClock::now()) {}

void ServerLink::start() {
  asio::co_spawn(io_, run(), net::rethrow);
}

void ServerLink::stop() {
  thread_.check();
  stopped_ = true;
  if (stream_) stream_->close();
  more_.cancel();
  again_.cancel();
}

void ServerLink::send(std::uint64_t tag, kvstore::Message message) {
  thread_.check();
  if (connected_ || WaitingMessages::is_request(message)) waiting_.add(tag, std::move(message));
  more_.cancel();
}

void ServerLink::drop(const kvstore::SliceId& slice, std::uint64_t step) {
  waiting_.drop_pushes(slice, step);
}

bool ServerLink::writes(const kvstore::SliceId& slice, std::uint64_t step) const {
  return std::ranges::any_of(under_way_, [&](const WaitingMessages::Item& each) {
    return WaitingMessages::is_push(each.message, slice, step);
  });
}

void ServerLink::reconnect_as(LocalProcess& local) {
  local_ = &local;
  turned_away_ = "connects again";
  if (stream_) stream_->close();
}

void ServerLink::break_off(TimePoint since) {
  if (!under_way_.empty() && began_ < since) stream_->close();
}

void ServerLink::look() {
  const auto before = std::exchange(progress_, {});
  if (connected_) progress_ = net::progress_of(stream_->socket().native_handle());
  moves_ = progress_.received != before.received || progress_.acknowledged != before.acknowledged;
}

void ServerLink::pass(Duration time, Duration longest_silence) {
  if (!connected_) return;
  if (in_transfer() && moves_) silence_ = {};
  const bool was_asked = silence_ >= longest_silence / 3;
  silence_ += time;
  if (!was_asked && silence_ >= longest_silence / 3) send(0, kvstore::AskEpoch{});
  if (silence_ < longest_silence) return;
  turned_away_ = "it has sent nothing for " +
                 std::to_string(longest_silence / std::chrono::milliseconds(1)) +
                 " ms, although it was asked";
  failed({net::Failure::Kind::timed_out, turned_away_});
  silence_ = {};
  stream_->close();
}

void ServerLink::stop_landing() {
  if (!landing_.empty()) stream_->close();
}

// Once for each problem, and again when it is no longer an early one.
void ServerLink::failed(const net::Failure& failure) {
  const LogLevel level = grace_.level_of(failure, SteadyClock::now());
  const bool told = failure.detail == problem_ && told_level_ >= level;
  if (!told && !stopped_) {
    log(level, "kvstore",
        "server '" + server_.name + "'" + (level == LogLevel::info ? " is not there yet: " : ": ") +
            failure.detail);
  }
  problem_ = failure.detail;
  told_level_ = told ? told_level_ : level;
  rejected_ = failure.kind == net::Failure::Kind::rejected;
}

asio::awaitable<void> ServerLink::run() {
  while (!stopped_) {
    stream_ = std::make_shared<net::Stream>(io_);
    const std::shared_ptr<net::Stream> stream = stream_;
    net::IoResult<wire::Welcome> welcome = net::Failure();
    {
      const net::Deadline end(stream->get_executor(), SteadyClock::now() + kvstore::connect_time,
                              [&] { stream->close(); });
      welcome =
          co_await net::open_connection(*stream, *local_, server_, congestion_control_, hello_id);
      if (!welcome && end.expired()) {
        welcome = net::Failure(net::Failure::Kind::timed_out, "no answer in time");
      }
    }
    if (welcome && !stopped_) {
      problem_.clear();
      rejected_ = false;
      grace_.connected();
      back_off_ = kvstore::first_pause;
      connected_ = true;
      silence_ = {};
      writing_ = true;
      open_door(welcome->same_host);
      events_.connected(server_.name);
      asio::co_spawn(io_, write(stream), net::rethrow);
      kvstore::MemberId server{server_.name, welcome->incarnation};
      co_await read(*stream, std::move(server));
      connected_ = false;
      close_door();
      waiting_.drop_others();
      stream->close();
      more_.cancel();
      while (writing_) {
        over_.expires_at(TimePoint::max());
        co_await over_.async_wait(net::as_result);
      }
    } else if (!welcome) {
      failed(welcome.error());
    }
    stream->close();
    if (stopped_) break;
    std::uniform_real_distribution<double> jitter(0.5, 1);
    again_.expires_after(std::chrono::duration_cast<Duration>(back_off_ * jitter(random_)));
    back_off_ = std::min(2 * back_off_, kvstore::longest_pause);
    co_await again_.async_wait(net::as_result);
  }
}

asio::awaitable<void> ServerLink::read(net::Stream& stream, kvstore::MemberId server) {
  const std::span<const wire::TypeBound> bounds = wire::kv_types(wire::KvRoute::server_to_worker);
  const OnExit over([this] { landing_ = {}; });
  const net::PayloadTarget target = [this](wire::MessageType type, std::span<const std::byte> head,
                                           std::uint64_t bytes) {
    reading_values_ = bytes > 0;
    if (type != wire::MessageType::kv_answer) return std::span<std::byte>();
    const auto decoded = wire::decode_kv_head(type, head);
    const auto* answer = decoded ? std::get_if<kvstore::Answer>(&decoded->message) : nullptr;
    const auto place = answer != nullptr ? events_.target_of(*answer) : std::span<std::byte>();
    landing_ = place.size() == bytes ? place : std::span<std::byte>();
    return landing_;
  };
  turned_away_.clear();
  net::ReadAhead ahead(stream);
  while (!stopped_) {
    landing_ = {};
    auto frame = co_await net::read_frame(ahead, bounds, target);
    reading_values_ = false;
    if (!frame) {
      if (!turned_away_.empty()) {
        problem_ = turned_away_;
      } else {
        failed(frame.error());
      }
      co_return;
    }
    silence_ = {};
    const std::size_t landed_bytes = landing_.size();
    const bool landed = landed_bytes != 0;
    auto message = !landed
                       ? wire::decode_kv(frame->header.type, frame->body, std::move(frame->payload))
                       : wire::decode_landed(frame->body, landing_);
    landing_ = {};
    if (!message) {
      failed(message.error());
      co_return;
    }
    if (auto* answer = std::get_if<kvstore::Answer>(&*message)) {
      if (is_refusal(answer->kind)) turned_away_ = answer->problem;
      std::uint64_t answer_bytes = landed_bytes;
      if (answer->values) answer_bytes += answer->values->size();
      if (answer->place) answer_bytes += answer->place->bytes;
      std::string why = wrong_length(*answer, landed);
      if (why.empty() && answer->place) why = take_values(*answer);
      if (!why.empty()) {
        failed({net::Failure::Kind::protocol, std::move(why)});
        co_return;
      }
      traffic_.received += answer_bytes;
    }
    events_.arrived(server, frame->header.request_id, std::move(*message));
  }
}

void ServerLink::share(const AlignedBuffer& memory) {
  thread_.check();
  const auto number = static_cast<std::uint32_t>(memories_.size());
  memories_.push_back(memory);
  if (exchange_) exchange_->share(number, *memory.file(), memory.bytes().size());
}

// The server tells only its workers the name of the socket, and the kernel states the user at the
// other end.
void ServerLink::open_door(const std::string& offer_text) {
  read_ = told_ = 0;
  const auto offer = same_host_ ? same_host::parse_offer(offer_text) : std::nullopt;
  if (!offer || offer->boot_id != same_host::boot_id()) return;
  auto connected = ipc::connect_to(offer->socket);
  if (!connected) return;
  asio::local::stream_protocol::socket socket(io_);
  boost::system::error_code error;
  socket.assign(asio::local::stream_protocol(), connected->get(), error);
  if (error) return;
  connected->release();
  exchange_ =
      std::make_shared<same_host::MemoryExchange>(same_host::FrameSocket(std::move(socket)));
  const wire::Hello hello{wire::Role::node,    wire::capability(Codec::raw),
                          local_->cluster,     local_->name,
                          local_->incarnation, local_->manifest.fingerprint()};
  exchange_->send(wire::encode(hello, hello_id));
  for (std::uint32_t number = 0; number < memories_.size(); ++number)
    exchange_->share(number, *memories_[number].file(), memories_[number].bytes().size());
  auto exchange = exchange_;
  asio::co_spawn(io_, exchange->run(), [exchange](std::exception_ptr failure, const std::string&) {
    net::rethrow(std::move(failure));
  });
}

void ServerLink::close_door() {
  if (exchange_) exchange_->close();
  exchange_.reset();
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
  const kvstore::MemoryPlace place = *std::exchange(answer.place, std::nullopt);
  const auto source = exchange_ ? exchange_->bytes(place.memory, place.offset, place.bytes)
                                : std::span<const std::byte>();
  if (source.empty()) return "an answer names memory that was not shared";
  const auto target = events_.target_of(answer);
  if (target.size() == source.size()) {
    std::memcpy(target.data(), source.data(), source.size());
    answer.values = std::make_shared<kvstore::Bytes>();  // they are in their target already
  } else {
    answer.values = std::make_shared<kvstore::Bytes>(copy_of(source));
  }
  if (!exchange_->intact()) return "took its memory back while it was read";
  read_ = place.mark;
  return {};
}

std::optional<kvstore::Message> ServerLink::mapped(const kvstore::Message& message) const {
  const auto* push = std::get_if<kvstore::Push>(&message);
  if (push == nullptr || push->lent.size() < least_reused_bytes || !exchange_) return std::nullopt;
  for (std::uint32_t number = 0; number < memories_.size(); ++number) {
    const auto bytes = memories_[number].bytes();
    const std::less_equal<const std::byte*> before;
    if (!before(bytes.data(), push->lent.data()) ||
        !before(push->lent.data() + push->lent.size(), bytes.data() + bytes.size()))
      continue;
    if (!exchange_->is_shared(number)) return std::nullopt;
    kvstore::Push other = *push;
    const auto offset = static_cast<std::uint64_t>(push->lent.data() - bytes.data());
    other.place = kvstore::MemoryPlace{number, offset, push->lent.size(),
                                       memories_[number].file()->generation()};
    other.lent = {};
    return other;
  }
  return std::nullopt;
}

asio::awaitable<void> ServerLink::write(std::shared_ptr<net::Stream> stream) {
  const OnExit over([this] {
    writing_ = false;
    over_.cancel();
  });
  while (connected_ && stream->is_open()) {
    if (waiting_.empty()) {
      more_.expires_at(TimePoint::max());
      co_await more_.async_wait(net::as_result);
      continue;
    }
    const bool whole = co_await write_some(*stream);
    under_way_.clear();
    events_.written();
    if (!whole) stream->close();
  }
}

// What waits, as far as it leaves together.
void ServerLink::fill(wire::KvFrames& frames) {
  if (read_ > told_) {
    told_ = read_;
    frames.add(wire::encode_kv_read(read_));
  }
  while (!waiting_.empty()) {
    const WaitingMessages::Item& next = waiting_.next();
    const std::optional<kvstore::Message> other = mapped(next.message);
    const kvstore::Message& message = other ? *other : next.message;
    if (!under_way_.empty() && !frames.has_room_for(message)) return;
    frames.add(message, static_cast<std::uint32_t>(next.tag));
    under_way_.push_back(waiting_.take());
  }
}

asio::awaitable<bool> ServerLink::write_some(net::Stream& stream) {
  began_ = SteadyClock::now();
  frames_.clear();
  fill(frames_);
  const std::vector<asio::const_buffer> buffers = net::buffers_of(frames_);
  const std::span<const asio::const_buffer> all(buffers);
  const std::size_t bytes = frames_.bytes();
  const Duration time = kvstore::time_to_write(kvstore::write_time_of_worker, bytes);
  const net::Deadline end(stream.get_executor(), began_ + time, [&] {
    turned_away_ = "it has not taken " + std::to_string(bytes) + " bytes within " +
                   std::to_string(time / std::chrono::seconds(1)) + " s";
    failed({net::Failure::Kind::timed_out, turned_away_});
    stream.close();
  });
  // Before the write, because the answers may be handled before its end is.
  std::size_t values = 0;
  for (const auto& each : under_way_) values += pushed_bytes(each.message);
  traffic_.sent += values;
  const auto broken = co_await stream.write_all(all);
  if (broken) traffic_.sent -= values;
  co_return !broken;
}

}  // namespace dpwa::kvclient
