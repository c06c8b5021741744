#include "dpwa/net/same_host/path.h"

#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/net/local_process.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

Path::Path(asio::io_context& io, LocalProcess& local, std::string peer, bool enabled,
           std::span<std::byte> payload)
    : local_(local),
      peer_(std::move(peer)),
      enabled_(enabled),
      memory_(io, local, peer_, payload) {}

void Path::close() {
  closed_ = true;
  memory_.close();
}

void Path::offered(const wire::Welcome& welcome) {
  if (!enabled_ || boot_id().empty()) return;
  auto offer = parse_offer(welcome.same_host);
  if (offer && offer->boot_id != boot_id()) offer.reset();
  if (offer != offer_) retry_at_ = TimePoint::min();
  offer_ = std::move(offer);
  incarnation_ = welcome.incarnation;
}

void Path::give_up(const std::string& why) {
  memory_.close();
  retry_at_ = SteadyClock::now() + pause_after_failure;
  log(LogLevel::debug, "tx", "'" + peer_ + "' is read over TCP, not from its memory: " + why);
}

asio::awaitable<bool> Path::open() {
  if (memory_.is_open()) co_return true;
  if (!offer_ || SteadyClock::now() < retry_at_) co_return false;
  Offer offer = *offer_;
  const std::string why = co_await memory_.connect(std::move(offer), incarnation_);
  if (!why.empty()) {
    if (!closed_) give_up(why);
    co_return false;
  }
  if (announced_ != offer_) {
    announced_ = offer_;
    log(LogLevel::info, "tx", "reads snapshots of '" + peer_ + "' from its memory, on this host");
  }
  co_return true;
}

bool Path::settles(const PullResult& result) {
  // Taken back: too slow for the peer, as an answer over TCP would be.
  const bool final_word =
      closed_ || !result.failure || memory_.is_open() || result.failure == PeerFailure::timed_out;
  if (final_word) return true;
  const bool fresh_try = kept_ && result.failure == PeerFailure::unreachable;
  kept_ = false;
  if (fresh_try) return false;
  if (result.failure == PeerFailure::protocol) ++local_.traffic.protocol_errors;
  give_up(result.detail);
  return false;
}

asio::awaitable<std::optional<PullResult>> Path::ask(PullRequest request) {
  std::optional<PullResult> result;
  kept_ = memory_.is_open();
  while (true) {
    const bool ready = !closed_ && co_await open();
    if (closed_) {
      result = failed(PeerFailure::unreachable, "the connection was closed");
      co_return result;
    }
    if (!ready) co_return std::nullopt;
    result = co_await memory_.ask(request);
    if (settles(*result)) co_return result;
  }
}

asio::awaitable<PullResult> Path::land(Landing& landing) {
  PullResult result = co_await memory_.land(landing);
  result.ask_again = !settles(result);
  co_return result;
}

}  // namespace dpwa::same_host
