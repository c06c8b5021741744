#include "dpwa/net/peer_channel.h"

#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "dpwa/net/certified.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/network.h"
#include "dpwa/net/socket_options.h"
#include "dpwa/security/security.h"

namespace dpwa {

namespace asio = boost::asio;
using wire::MessageType;

PeerChannel::PeerChannel(asio::io_context& io, LocalNode& local, PeerAddress address,
                         std::string congestion_control, AlignedBuffer& staging, bool same_host)
    : local_(local),
      address_(std::move(address)),
      congestion_control_(std::move(congestion_control)),
      stream_(io),
      reader_(stream_, staging),
      same_host_(io, local, address_.name, same_host, reader_.payload()) {}

void PeerChannel::begin() {
  closed_ = false;
  same_host_.begin();
}

void PeerChannel::close() {
  closed_ = true;
  same_host_.close();
  stream_.close();
}

void PeerChannel::hang_up() {
  same_host_.hang_up();
  stream_.close();
}

// None: the connection is as secure as the security mode asks for.
asio::awaitable<std::optional<PullResult>> PeerChannel::secure() {
  std::optional<PullResult> refused;
  if (!local_.security) co_return refused;
  const auto failure = co_await stream_.secure(local_.security->context(), /*calls=*/true);
  if (failure) {
    refused = failed(*failure);
  } else if (const auto names = stream_.certified_names();
             !address_.name.empty() && !net::is_for(names, address_.name)) {
    refused = failed(PeerFailure::rejected, "shows a certificate for " + net::words_for(*names));
  }
  if (refused && refused->failure == PeerFailure::rejected) ++local_.traffic.security_failures;
  co_return refused;
}

asio::awaitable<PeerChannel::Greeting> PeerChannel::shake_hands() {
  const auto error = co_await net::connect(stream_.socket(), address_);
  if (error) {
    Greeting greeting{PeerFailure::unreachable, error.message(), {}};
    co_return greeting;
  }
  net::tune(stream_.socket(), congestion_control_);
  const auto refused = co_await secure();
  if (refused) {
    Greeting greeting{refused->failure, refused->detail, {}};
    co_return greeting;
  }
  const wire::Hello hello{wire::Role::node, local_.capabilities(), local_.cluster,
                          local_.name,      local_.incarnation,    local_.manifest.fingerprint()};
  const auto encoded = wire::encode(hello, next_request_id_++);
  const auto written = co_await stream_.write_all(encoded);
  if (written) {
    Greeting greeting{PeerFailure::unreachable, written.message(), {}};
    co_return greeting;
  }
  constexpr auto replies =
      net::types(MessageType::welcome, MessageType::reject, MessageType::manifest_request);
  auto frame = co_await net::read_frame(stream_, replies);
  if (frame && frame->header.type == MessageType::manifest_request) {
    const auto manifest = wire::encode(local_.manifest, frame->header.request_id);
    const auto sent = co_await stream_.write_all(manifest);
    if (!sent) frame = co_await net::read_frame(stream_, replies);
  }
  Greeting greeting;
  if (!frame) {
    if (frame.error().security) ++local_.traffic.security_failures;
    const PullResult result = failed(frame.error());
    greeting.failure = result.failure;
    greeting.detail = result.detail;
  } else if (frame->header.type != MessageType::welcome) {
    const PullResult result = declined(frame->header.type, frame->body);
    greeting.failure = result.failure;
    greeting.detail = result.detail;
    greeting.reject = result.reject;
  } else if (const auto welcome = wire::decode_welcome(frame->body); !welcome) {
    greeting.failure = PeerFailure::protocol;
    greeting.detail = welcome.error().detail;
  } else if (!address_.name.empty() && welcome->node != address_.name) {
    greeting.failure = PeerFailure::rejected;
    greeting.detail = "the node at this address calls itself '" + welcome->node + "'";
  } else if (const auto names = stream_.certified_names(); !net::is_for(names, welcome->node)) {
    ++local_.traffic.security_failures;
    greeting.failure = PeerFailure::rejected;
    greeting.detail = "shows a certificate for " + net::words_for(*names);
  } else {
    greeting.welcome = *welcome;
    if (address_.name.empty()) address_.name = welcome->node;
    incarnation_ = welcome->incarnation;
    capabilities_ = welcome->capabilities;
    same_host_.offered(*welcome);
  }
  co_return greeting;
}

asio::awaitable<PeerChannel::Greeting> PeerChannel::greet() {
  begin();
  hang_up();
  auto greeting = co_await shake_hands();
  if (greeting.failure) hang_up();
  co_return greeting;
}

bool PeerChannel::exchanges() const {
  return (capabilities_ & local_.capabilities() & wire::members_capability) != 0;
}

bool PeerChannel::has_news() const {
  return exchanges() && local_.members->exchange_is_due(address_.name);
}

std::vector<std::byte> PeerChannel::news(std::uint32_t request_id) const {
  return wire::encode(local_.members->request(address_.name), request_id);
}

asio::awaitable<PeerChannel::Greeting> PeerChannel::hear_of_members(std::uint32_t request_id) {
  Greeting heard;
  constexpr auto replies = net::types(MessageType::members, MessageType::reject);
  const auto frame = co_await net::read_frame(stream_, replies);
  if (!frame) {
    const PullResult result = failed(frame.error());
    heard.failure = result.failure;
    heard.detail = result.detail;
  } else if (frame->header.type == MessageType::reject) {
    const PullResult result = declined(frame->header.type, frame->body);
    heard.failure = result.failure;
    heard.detail = result.detail;
    heard.reject = result.reject;
  } else if (auto exchange = wire::decode_members(frame->body);
             !exchange || frame->header.request_id != request_id) {
    heard.failure = PeerFailure::protocol;
    heard.detail = exchange ? "answered another request" : exchange.error().detail;
  } else {
    boost::system::error_code error;
    const auto remote = stream_.socket().remote_endpoint(error);
    const std::string from = error ? "" : net::text_of(remote.address());
    more_wanted_ = local_.members->merge_answer(address_.name, incarnation_, *exchange, from);
  }
  co_return heard;
}

asio::awaitable<PeerChannel::Greeting> PeerChannel::exchange_members(bool all) {
  Greeting result;
  if (!exchanges()) co_return result;
  // A table has no more parts than this.
  constexpr int most = 128;
  more_wanted_ = true;
  for (int part = 0; part < (all ? most : 1) && more_wanted_ && !result.failure; ++part) {
    const std::uint32_t request_id = next_request_id_++;
    const auto frame = news(request_id);
    const auto error = co_await stream_.write_all(frame);
    if (error) {
      result.failure = PeerFailure::unreachable;
      result.detail = error.message();
      hang_up();
      break;
    }
    const Greeting heard = co_await hear_of_members(request_id);
    result.failure = heard.failure;
    result.detail = heard.detail;
    result.reject = heard.reject;
    if (heard.failure) hang_up();
  }
  co_return result;
}

asio::awaitable<PullResult> PeerChannel::pull(PullRequest request, Landing& landing) {
  PullResult result;
  begin();
  // A kept connection may have died unnoticed: the first failure on it costs one fresh try.
  const bool kept = stream_.is_open();
  for (int attempt = kept ? 0 : 1; attempt < 2; ++attempt) {
    if (!stream_.is_open()) {
      const auto greeting = co_await shake_hands();
      if (greeting.failure) {
        hang_up();
        result.failure = greeting.failure;
        result.detail = greeting.detail;
        result.reject = greeting.reject;
        co_return result;
      }
    }
    const bool tells = has_news();
    const std::uint32_t news_id = tells ? next_request_id_++ : 0;
    std::vector<std::byte> encoded = tells ? news(news_id) : std::vector<std::byte>();
    const bool told = tells && same_host_.in_use();
    if (told) {
      const auto error = co_await stream_.write_all(encoded);
      encoded.clear();
      if (error) {
        result.failure = PeerFailure::unreachable;
        result.detail = error.message();
        hang_up();
        if (closed_) break;
        continue;
      }
    }
    PullRequest asked = request;
    if ((capabilities_ & wire::capability(asked.codec)) == 0) asked.codec = Codec::raw;
    PullRequest for_memory = asked;
    auto from_memory = co_await same_host_.pull(std::move(for_memory), landing);
    if (from_memory) {
      if (told && stream_.is_open()) {
        const Greeting heard = co_await hear_of_members(news_id);
        if (heard.failure) hang_up();
      }
      co_return std::move(*from_memory);
    }
    const std::uint32_t request_id = next_request_id_++;
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
    const auto pull = wire::encode(message, request_id);
    encoded.insert(encoded.end(), pull.begin(), pull.end());  // news and request leave together
    const auto error = co_await stream_.write_all(encoded);
    Greeting heard;
    if (error) {
      heard.failure = PeerFailure::unreachable;
      heard.detail = error.message();
    } else if (tells) {
      heard = co_await hear_of_members(news_id);
    }
    if (heard.failure) {
      result.failure = heard.failure;
      result.detail = heard.detail;
      result.reject = heard.reject;
    } else {
      asked.unchecked_chunks = message.unchecked_chunks;
      result = co_await reader_.receive(std::move(asked), request_id, landing);
    }
    result.incarnation = incarnation_;
    if (!result.failure || declined_in_order(*result.failure)) {
      co_return result;  // the stream is whole
    }
    hang_up();
    const bool broke_before_reply = result.failure == PeerFailure::unreachable && result.bytes == 0;
    if (closed_ || !broke_before_reply) break;
  }
  co_return result;
}

}  // namespace dpwa
