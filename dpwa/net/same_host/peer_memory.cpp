#include "dpwa/net/same_host/peer_memory.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/local_process.h"
#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

// The bytes read at once: long enough to cost nothing, short enough to keep deadlines in between.
constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

}  // namespace

PeerMemory::PeerMemory(asio::io_context& io, LocalProcess& local, std::string peer, bool enabled,
                       std::span<std::byte> payload)
    : io_(io), local_(local), peer_(std::move(peer)), enabled_(enabled), payload_(payload) {}

void PeerMemory::close() {
  if (exchange_) exchange_->close();
  exchange_.reset();
  borrowed_.reset();
}

void PeerMemory::offered(const wire::Welcome& welcome) {
  if (!enabled_) return;
  auto offer = offer_of_this_host(welcome.same_host);
  if (offer != offer_) retry_at_ = TimePoint::min();
  offer_ = std::move(offer);
  incarnation_ = welcome.incarnation;
}

void PeerMemory::give_up(const std::string& why) {
  close();
  retry_at_ = SteadyClock::now() + pause_after_failure;
  log(LogLevel::debug, "tx", "'" + peer_ + "' is read over TCP, not from its memory: " + why);
}

asio::awaitable<bool> PeerMemory::open() {
  if (is_open()) co_return true;
  if (!offer_ || SteadyClock::now() < retry_at_) co_return false;
  auto called = MemoryExchange::call(io_, *offer_, local_);
  if (!called) {
    give_up(called.error());
    co_return false;
  }
  const auto exchange = exchange_ = std::move(*called);
  const auto welcome = co_await exchange->welcomed();
  if (exchange_ != exchange) co_return false;  // closed meanwhile
  std::string why;
  if (!welcome) {
    why = welcome.error().detail;
  } else if (welcome->node != peer_ || welcome->incarnation != incarnation_) {
    why = "another node answers there";
  } else if (exchange->memory(0) == nullptr) {
    why = "shares no memory";  // as one of another version
  }
  if (!why.empty()) {
    give_up(why);
    co_return false;
  }
  // Lets the memory of a peer that dies go at once, not with the next pull from it.
  asio::co_spawn(io_, exchange->run(), [exchange](std::exception_ptr failure, const auto&) {
    net::rethrow(std::move(failure));
    exchange->forget();
  });
  if (announced_ != offer_) {
    announced_ = offer_;
    log(LogLevel::info, "tx", "reads snapshots of '" + peer_ + "' from its memory, on this host");
  }
  co_return true;
}

PullResult PeerMemory::borrow(const PullRequest& request, const wire::Mapped& mapped) {
  if (ByteRange{mapped.place.offset, mapped.place.bytes} != request.range)
    return failed(PeerFailure::protocol, "handed over a range not asked for");
  borrowed_ = exchange_ ? exchange_->borrow(mapped.place) : std::nullopt;
  if (!borrowed_) return failed(PeerFailure::protocol, "referred to memory that it has not sent");
  if (borrowed_->file->size() != local_.manifest.total_bytes())
    return failed(PeerFailure::protocol, "sent memory of another size");
  request_ = request;
  progress_ = mapped.progress;
  PullResult result;
  result.progress = progress_;
  return result;
}

std::uint64_t PeerMemory::land_piece(ByteRange piece, Landing& landing) {
  const MemoryFile& memory = *borrowed_->file;
  const Codec codec = request_.codec;
  if (codec == Codec::raw) {
    landing.consume(piece.offset, memory.bytes(piece));
    return piece.length;
  }
  const Manifest& manifest = local_.manifest;
  const auto payload = payload_.first(payload_bytes(manifest, codec, piece));
  encode_chunk(manifest, codec, memory.bytes({0, manifest.total_bytes()}), piece, payload);
  landing.consume(codec, piece, payload);
  return payload.size();
}

// Lets the thread do its other work between two pieces; a deadline may close this there. With a
// codec the pieces are the chunks of a reply over TCP, for its units depend on them.
asio::awaitable<PullResult> PeerMemory::land(Landing& landing) {
  PullResult result;
  result.progress = progress_;
  const ByteRange range = request_.range;
  const std::uint64_t longest = request_.codec == Codec::raw ? piece_bytes : payload_.size();
  for (std::uint64_t at = 0; at < range.length;) {
    if (!borrowed_) {
      result.failure = PeerFailure::unreachable;
      result.detail = "the connection was closed";
      co_return result;
    }
    const ByteRange piece{range.offset + at, std::min(longest, range.length - at)};
    if (!borrowed_->file->populate(piece))
      co_return failed(PeerFailure::protocol, "sent memory that cannot be read");
    result.bytes += land_piece(piece, landing);
    at += piece.length;
    if (!borrowed_->intact()) {
      ++local_.traffic.same_host_reads_discarded;
      result = failed(PeerFailure::timed_out, "took its memory back while it was read");
      result.progress = progress_;
      co_return result;
    }
    if (at < range.length) co_await asio::post(io_, asio::use_awaitable);
  }
  borrowed_.reset();
  result.same_host = true;
  co_return result;
}

}  // namespace dpwa::same_host
