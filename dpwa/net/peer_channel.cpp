#include "dpwa/net/peer_channel.h"

#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "dpwa/net/connect.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/network.h"

namespace dpwa {

namespace asio = boost::asio;
using wire::MessageType;

namespace {

PeerChannel::Greeting greeting_of(const net::Failure& failure) {
  return {net::verdict_of(failure), failure.detail, {}, failure.reject};
}

}  // namespace

PeerChannel::PeerChannel(asio::io_context& io, LocalProcess& local, PeerAddress address,
                         AlignedBuffer& staging, bool same_host)
    : local_(local),
      address_(std::move(address)),
      connection_(io),
      reader_(connection_, local.manifest, staging),
      memory_(io, local, address_.name, same_host, reader_.payload()) {}

void PeerChannel::begin() {
  thread_.check();
  closed_ = false;
}

void PeerChannel::close() {
  closed_ = true;
  hang_up();
}

void PeerChannel::hang_up() {
  memory_.close();
  connection_.close();
}

void PeerChannel::give_up_memory(const std::string& why) {
  ++local_.traffic.protocol_errors;
  hang_up();
  memory_.give_up(why);
}

// The landed parameters stay valid when this fails; the next pull then finds the connection broken.
asio::awaitable<void> PeerChannel::release(bool landed) {
  auto frame = wire::encode(wire::Release{landed}, std::exchange(lent_for_, 0));
  const auto broken = co_await connection_.send(std::move(frame));
  if (broken) hang_up();
}

asio::awaitable<net::IoResult<wire::Welcome>> PeerChannel::shake_hands() {
  requests_.clear();
  const std::uint32_t request_id = requests_.begin(net::types(MessageType::welcome));
  auto welcome = co_await net::open_connection(connection_, local_, address_, request_id);
  requests_.clear();
  if (welcome) {
    if (address_.name.empty()) address_.name = welcome->node;
    incarnation_ = welcome->incarnation;
    capabilities_ = welcome->capabilities;
    memory_.offered(*welcome);
  } else if (welcome.error().kind == net::Failure::Kind::security) {
    ++local_.traffic.security_failures;
  }
  co_return welcome;
}

asio::awaitable<PeerChannel::Greeting> PeerChannel::greet() {
  begin();
  hang_up();
  auto welcome = co_await shake_hands();
  Greeting greeting;
  if (welcome) {
    greeting.welcome = std::move(*welcome);
  } else {
    greeting = greeting_of(welcome.error());
    hang_up();
  }
  co_return greeting;
}

bool PeerChannel::exchanges() const {
  return (capabilities_ & local_.capabilities() & wire::members_capability) != 0;
}

bool PeerChannel::keeps_ledger() const {
  return (capabilities_ & local_.capabilities() & wire::ledger_capability) != 0;
}

bool PeerChannel::has_news() const {
  return exchanges() && local_.members->exchange_is_due(address_.name);
}

bool PeerChannel::has_surplus() const {
  return connection_.incoming().holds_bytes() && requests_.answers() == wire::TypeSet();
}

std::vector<std::byte> PeerChannel::begin_news() {
  news_ = requests_.begin(net::types(MessageType::members, MessageType::reject));
  return wire::encode(local_.members->request(address_.name), news_);
}

asio::awaitable<net::IoResult<net::Frame>> PeerChannel::answer_to(
    std::uint32_t request, std::uint64_t most_snapshot_bytes) {
  while (true) {
    net::Expected answers(requests_.answers());
    answers.most_snapshot_bytes = most_snapshot_bytes;
    auto frame = co_await connection_.receive(answers);
    if (!frame) co_return frame;
    if (!requests_.answered(frame->header)) {
      net::Failure failure(net::Failure::Kind::protocol, "answered another request");
      co_return failure;
    }
    if (frame->header.request_id == request) co_return frame;
    auto failure = take_members(*frame);
    if (failure) co_return std::move(*failure);
  }
}

std::optional<net::Failure> PeerChannel::take_members(const net::Frame& answer) {
  if (answer.header.type == MessageType::reject) {
    const auto reject = wire::decode_reject(answer.body);
    return reject ? net::Failure(*reject) : net::Failure(reject.error());
  }
  const auto exchange = wire::decode_members(answer.body);
  if (!exchange) return exchange.error();
  boost::system::error_code error;
  const auto remote = connection_.stream().socket().remote_endpoint(error);
  const std::string from = error ? "" : net::text_of(remote.address());
  more_wanted_ = local_.members->merge_answer(address_.name, incarnation_, *exchange, from);
  return std::nullopt;
}

asio::awaitable<std::optional<net::Failure>> PeerChannel::hear_out_news() {
  std::optional<net::Failure> failure;
  if (!requests_.waits_for(news_)) co_return failure;
  const auto answer = co_await answer_to(news_);
  failure = answer ? take_members(*answer) : answer.error();
  if (failure) hang_up();
  co_return failure;
}

asio::awaitable<PeerChannel::Greeting> PeerChannel::exchange_members(bool all) {
  thread_.check();
  std::optional<net::Failure> failure;
  // The largest number of parts of a table.
  constexpr int most = 128;
  more_wanted_ = exchanges();
  for (int part = 0; part < (all ? most : 1) && more_wanted_ && !failure; ++part) {
    auto frame = begin_news();
    failure = co_await connection_.send(std::move(frame));
    if (!failure) failure = co_await hear_out_news();
    if (failure) hang_up();
  }
  Greeting result;
  if (failure) result = greeting_of(*failure);
  co_return result;
}

asio::awaitable<PullResult> PeerChannel::ask(PullRequest request) {
  PullResult result;
  begin();
  // A kept connection may have died unnoticed: the first failure on it costs one fresh try.
  for (kept_ = connection_.is_open();; kept_ = false) {
    if (!connection_.is_open()) {
      const auto welcome = co_await shake_hands();
      if (!welcome) {
        hang_up();
        co_return failed(welcome.error());
      }
    }
    const bool may_map = !closed_ && co_await memory_.open();
    if (closed_) {
      result = failed(PeerFailure::unreachable, "the connection was closed");
      break;
    }
    PullRequest asked = request;
    if ((capabilities_ & wire::capability(asked.codec)) == 0) asked.codec = Codec::raw;
    if (!keeps_ledger()) asked.taken.reset();
    std::vector<std::byte> encoded;
    // A peer that leaves those of before unanswered gets no others.
    if (has_news() && !requests_.waits_for(news_)) encoded = begin_news();
    wire::TypeSet answers = ReplyReader::answers();
    if (may_map) answers.add(MessageType::mapped);
    const std::uint32_t request_id = requests_.begin(answers);
    wire::Pull message;
    message.codec = asked.codec;
    message.full = request.full;
    message.for_final_average = request.for_final_average;
    if (request.known_incarnation == incarnation_) message.known_version = request.known_version;
    message.offset = request.range.offset;
    message.length = request.range.length;
    message.chunk_bytes = reader_.chunk_bytes();
    message.unchecked_chunks =
        (capabilities_ & local_.capabilities() & wire::unchecked_chunks_capability) != 0;
    message.deadline_ms = request.deadline_ms;
    message.may_map = may_map;
    message.taken = asked.taken;
    const auto pull = wire::encode(message, request_id);
    encoded.insert(encoded.end(), pull.begin(), pull.end());  // news and request leave together
    asked.unchecked_chunks = message.unchecked_chunks;
    const auto broken = co_await connection_.send(std::move(encoded));
    lent_for_ = 0;
    if (broken) {
      result = failed(*broken);
    } else {
      const std::uint64_t most_bytes = ReplyReader::most_snapshot_bytes(asked);
      const auto reply = co_await answer_to(request_id, most_bytes);
      if (reply && reply->header.type == MessageType::mapped) {
        lent_for_ = request_id;
        const auto place = wire::decode_mapped(reply->body);
        result = place ? memory_.borrow(asked, *place) : failed(place.error());
        if (result.failure) {
          give_up_memory(result.detail);
          if (closed_) break;
          continue;
        }
      } else {
        result = reply ? reader_.take_head(asked, *reply) : failed(reply.error());
      }
      if (result.failure && has_surplus())
        result = failed(PeerFailure::protocol, "sent bytes that were not asked for");
    }
    result.incarnation = incarnation_;
    if (!result.failure || declined_in_order(*result.failure)) {
      co_return result;  // the stream is whole
    }
    hang_up();
    if (closed_ || !kept_ || result.failure != PeerFailure::unreachable) break;
  }
  co_return result;
}

asio::awaitable<PullResult> PeerChannel::land(Landing& landing) {
  PullResult result;
  if (lent_for_ != 0) {
    result = co_await memory_.land(landing);
    result.incarnation = incarnation_;
    if (!result.failure) {
      co_await release(true);
    } else if (result.failure == PeerFailure::protocol) {
      give_up_memory(result.detail);
      result.ask_again = !closed_;
    } else {
      hang_up();
    }
    co_return result;
  }
  result = co_await reader_.land(landing);
  result.incarnation = incarnation_;
  if (!result.failure && has_surplus()) {
    result.failure = PeerFailure::protocol;
    result.detail = "sent more bytes than it announced";
  }
  if (result.failure) {
    hang_up();
    result.ask_again = kept_ && !closed_ && result.failure == PeerFailure::unreachable &&
                       result.bytes == 0;  // it broke before the first chunk was there
  }
  co_return result;
}

asio::awaitable<PullResult> PeerChannel::decline(PeerFailure why) {
  const bool lent = lent_for_ != 0;
  PullResult result = not_wanted(why, lent ? memory_.progress() : reader_.progress());
  result.incarnation = incarnation_;
  if (lent) {
    co_await release(false);
  } else {
    hang_up();  // the parameters are on their way
  }
  co_return result;
}

}  // namespace dpwa
