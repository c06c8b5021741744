#include "dpwa/net/client.h"

#include <algorithm>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <new>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/net/as_result.h"
#include "dpwa/net/deadline.h"
#include "dpwa/net/rethrow.h"

namespace dpwa {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

std::uint32_t whole_milliseconds(Duration left) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 1, 1 << 30));
}

// Arrived whole, and is not fit to be blended.
bool kept_out(PeerFailure failure) {
  return failure == PeerFailure::unusable || failure == PeerFailure::distant;
}

std::string words_for(double distance, double bound) {
  if (std::isinf(distance)) return "sent parameters that are too far away for a number";
  char text[96];
  std::snprintf(text, sizeof text, "sent parameters %.3g away, where the bound is %.3g", distance,
                bound);
  return text;
}

}  // namespace

Client::Client(asio::io_context& io, LocalNode& local, std::vector<PeerAddress> peers,
               ClientOptions options)
    : io_(io),
      local_(local),
      options_(std::move(options)),
      staging_(ReplyReader::make_staging(options_.chunk_bytes)),
      kept_(max_kept_connections),
      membership_timer_(io),
      table_(local.peers, options_.flow_control, options_.backoff),
      seen_(peers.size()),
      delay_(io),
      staleness_(options_.staleness),
      firewall_(options_.firewall, local.peers.size()),
      random_(options_.seed),
      landing_(local.manifest, options_.allocate) {
  for (auto& peer : peers) {
    channels_.push_back(std::make_shared<PeerChannel>(
        io, local, std::move(peer), options_.congestion_control, staging_, options_.same_host));
  }
  refused_name_.resize(channels_.size());
  introduced_.assign(channels_.size(), true);
}

Client::~Client() = default;

bool Client::begin(const PullSpec& spec) {
  if (local_.store.progress().version == 0) return false;
  {
    const MutexLock lock(mutex_);
    if (under_way_ || arrival_ || stopped_) return false;
    under_way_ = true;
  }
  ++local_.traffic.pulls_begun;
  spec_ = spec;
  auto round = [this] {
    try {
      asio::co_spawn(io_, run_round(spec_), [this](std::exception_ptr failure) {
        if (failure) round_refused();
        net::rethrow_unless_refused(std::move(failure));
      });
    } catch (const std::bad_alloc&) {
      round_refused();
    }
  };
  asio::post(
      io_, asio::bind_allocator(net::HandlerAllocator<std::byte>(round_memory_), std::move(round)));
  return true;
}

bool Client::under_way() const {
  const MutexLock lock(mutex_);
  return under_way_;
}

std::optional<Arrival> Client::take(Duration budget) {
  MutexLock lock(mutex_);
  if (!arrival_ && under_way_ && budget > Duration::zero()) {
    const TimePoint until = SteadyClock::now() + budget;
    while (!arrival_ && !stopped_ && changed_.wait_until(lock, until)) {
    }
  }
  return std::exchange(arrival_, std::nullopt);
}

void Client::deliver(Arrival arrival) {
  const MutexLock lock(mutex_);
  under_way_ = false;
  arrival_ = std::move(arrival);
  changed_.notify_all();
}

void Client::round_refused() {
  for (const auto& channel : channels_) {
    if (channel) channel->close();
  }
  landing_.release();
  Arrival nothing;
  nothing.outcome = Outcome::unreachable;
  deliver(std::move(nothing));
}

asio::awaitable<void> Client::run_round(PullSpec spec) {
  Arrival arrival;
  if (spec.delay > Duration::zero() && !stopped()) {
    delay_.expires_after(spec.delay);
    co_await delay_.async_wait(net::as_result);
  }
  arrival.full = spec.full;
  take_up_members();
  const auto begun = now();
  round_.begin(begun, spec.timeout, spec.peer);
  while (const auto peer = next_peer()) {
    const PullResult result = co_await attempt(*peer, spec);
    arrival.peer = *peer;
    arrival.peer_name = channels_[*peer]->name();
    arrival.progress = result.progress;
    arrival.bytes += result.bytes;
    local_.traffic.bytes_received += result.bytes;
    if (result.incarnation != 0) table_.introduced(*peer, result.incarnation);
    tell_members(*peer, result);
    if (!result.failure) {
      if (result.same_host) ++local_.traffic.same_host_pulls;
      const auto until = firewall_.succeeded(*peer, verdict_, now());
      hold(*peer, until, "sent parameters that are much too far away");
      if (spec.full && !spec.for_final_average) firewall_.replaced();
      arrival.stats = landing_.stats();
      arrival.factor_scale = verdict_.scale;
      arrival.own = compared_;
      arrival.block = spec.block;
      arrival.same_host = result.same_host;
      if (!spec.blends) {
        // As if it had not been seen.
      } else if (spec.range) {
        seen_[*peer].took(result.incarnation, result.progress.version, spec.block);
      } else {
        seen_[*peer].took_all(result.incarnation, result.progress.version);
      }
      if (spec.blends && !spec.full) table_.shares_lineage(*peer);
      round_.succeeded(table_, result.progress, now(), result.same_host);
      break;
    }
    if (result.failure == PeerFailure::protocol) ++local_.traffic.protocol_errors;
    arrival.refused += kept_out(*result.failure) ? 1 : 0;
    if (result.failure == PeerFailure::other_lineage)
      arrival.other_lineages.push_back({*peer, arrival.peer_name, result.progress});
    report(*peer, result);
    const auto until = firewall_.failed(*peer, *result.failure, now());
    hold(*peer, until, result.detail);
    round_.failed(table_, *result.failure, now(), random_);
  }
  arrival.outcome = round_.outcome();
  arrival.alone = table_.nobody_answers();
  arrival.took = now() - begun;
  landing_.release();
  deliver(std::move(arrival));
}

bool Client::stopped() const {
  const MutexLock lock(mutex_);
  return stopped_;
}

std::optional<PeerId> Client::next_peer() {
  if (stopped()) return std::nullopt;
  return round_.next_peer(table_, now(), random_);
}

asio::awaitable<PullResult> Client::attempt(PeerId peer, const PullSpec& spec) {
  const auto held = channels_[peer];
  PeerChannel& channel = *held;
  if (const auto idle = kept_.use(peer)) channels_[*idle]->close();
  const Duration left = round_.deadline() - now();
  const net::Deadline deadline(io_, SteadyClock::now() + left, [&channel] { channel.close(); });
  const double own_clock = local_.store.progress().clock;
  PullRequest request;
  request.full = spec.full;
  request.for_final_average = spec.for_final_average;
  request.range = spec.range.value_or(
      ByteRange{0, spec.full ? local_.manifest.total_bytes() : local_.manifest.exchange_bytes()});
  if (!spec.full) {
    request.codec = local_.codec;
    // Not the table's incarnation: any caller may raise that.
    request.known_incarnation = seen_[peer].incarnation();
    if (spec.blends)
      request.known_version = seen_[peer].known_version(request.known_incarnation, spec.block);
  }
  request.deadline_ms = whole_milliseconds(left);
  request.judge = [this, peer, &spec, own_clock](const Progress& progress) {
    return examine_head(peer, spec, progress, own_clock);
  };
  // Not the snapshot of the moment when the pull began: the peer answers with its latest, which may
  // be steps younger by then.
  request.begin_landing = [this, mode = spec.mode, range = request.range] {
    auto own = local_.store.latest();
    compared_ = own->progress();
    landing_.begin(mode, std::move(own), range);
  };
  PullResult result = co_await channel.pull(std::move(request), landing_);
  const Progress& known = table_.at(peer).progress;
  if (result.failure == PeerFailure::unchanged && !known.final && spec.judge_staleness &&
      !fresh(peer, known, own_clock)) {
    result.failure = PeerFailure::stale;
    result.detail = "has stood still at clock " + std::to_string(known.clock);
  }
  if (!result.failure) examine_landing(peer, spec, result);
  if (result.failure == PeerFailure::protocol) channel.close();
  if (result.failure && !kept_out(*result.failure) && deadline.expired()) {
    result.failure = PeerFailure::timed_out;
    result.detail = "no complete answer within the deadline";
  }
  co_return result;
}

bool Client::fresh(PeerId peer, const Progress& progress, double own_clock) {
  return staleness_.accept(peer, progress.clock, own_clock, now());
}

std::optional<PeerFailure> Client::examine_head(PeerId peer, const PullSpec& spec,
                                                const Progress& progress, double own_clock) {
  if (spec.judge_staleness && !fresh(peer, progress, own_clock)) return PeerFailure::stale;
  const std::uint64_t own_lineage = local_.store.progress().lineage;
  if (spec.blends && !spec.full && progress.lineage != own_lineage)
    return PeerFailure::other_lineage;
  return std::nullopt;
}

// The pass that landed the parameters has found out all that is asked here.
void Client::examine_landing(PeerId peer, const PullSpec& spec, PullResult& result) {
  verdict_ = {};
  const std::uint64_t version = result.progress.version;
  if (spec.blends && !spec.full && seen_[peer].repeats(result.incarnation, version, spec.block)) {
    result.failure = PeerFailure::protocol;
    result.detail = "sent version " + std::to_string(version) + " again, or after a later one";
    return;
  }
  if (!landing_.stats().finite) {
    result.failure = PeerFailure::unusable;
    result.detail = "sent parameters that are not finite";
    return;
  }
  // Weights of another descent are not blended, and a full pull replaces the own ones.
  const double distance = std::sqrt(landing_.stats().squared_distance);
  const bool replaces = spec.full && !spec.for_final_average;
  if (replaces && std::isinf(distance)) {
    result.failure = PeerFailure::unusable;
    result.detail = words_for(distance, 0);
    return;
  }
  const bool compares = result.progress.lineage == compared_.lineage;
  if (!compares || replaces) return;
  if (result.incarnation != seen_[peer].incarnation()) firewall_.restarted(peer);
  const double clock_gap = result.progress.clock - compared_.clock;
  verdict_ = spec.for_final_average ? firewall_.judge_final(distance)
                                    : firewall_.judge(peer, spec.block, distance, clock_gap);
  if (verdict_.unproven && spec.blends) {
    result.failure = PeerFailure::unproven;
    result.detail = "is the first to be heard, so that its distance tells nothing yet";
    return;
  }
  if (spec.blends && !spec.full && !verdict_.refused && landing_.may_overflow(verdict_.scale)) {
    verdict_.reported = true;
    result.failure = PeerFailure::distant;
    result.detail = "sent parameters so far away that a blend might overflow float16";
    return;
  }
  if (!verdict_.beyond) return;
  const std::string detail = words_for(distance, verdict_.bound);
  if (verdict_.refused) {
    result.failure = PeerFailure::distant;
    result.detail = detail;
  } else if (verdict_.reported) {
    const char* consequence = verdict_.scale < 1 ? "clipped" : "blended all the same";
    warn(peer, "distance", "'" + channels_[peer]->name() + "' " + detail + ": " + consequence);
  }
}

void Client::hold(PeerId peer, std::optional<TimePoint> until, const std::string& why) {
  if (!until) return;
  table_.hold(peer, *until);
  const auto length = std::chrono::ceil<std::chrono::milliseconds>(*until - now()).count();
  warn(peer, "quarantine",
       "'" + channels_[peer]->name() + "' is in quarantine for " + std::to_string(length) +
           " ms: " + why);
}

void Client::warn(PeerId peer, const std::string& kind, const std::string& text) {
  const auto held_back = limiter_.pass(channels_[peer]->name() + kind, SteadyClock::now());
  if (held_back) log(LogLevel::warn, "tx", text + since_words(*held_back));
}

void Client::report(PeerId peer, const PullResult& result) {
  const std::string& name = channels_[peer]->name();
  // Not by the detail: it may be in the peer's words, or differ every time.
  const std::string kind = std::to_string(static_cast<int>(*result.failure));
  const auto held_back = limiter_.pass(name + kind, SteadyClock::now());
  if (!held_back) return;
  // The trainer tells of other lineages.
  const bool ordinary = *result.failure == PeerFailure::distant
                            ? !verdict_.reported
                            : declined_in_order(*result.failure) ||
                                  *result.failure == PeerFailure::unproven ||
                                  *result.failure == PeerFailure::other_lineage;
  log(ordinary ? LogLevel::debug : LogLevel::warn, "tx",
      "pull from '" + name + "' failed: " + result.detail + since_words(*held_back));
}

void Client::peer_called(const std::string& name, std::uint64_t incarnation) {
  if (const auto peer = table_.find(name)) table_.returned(*peer, incarnation);
}

void Client::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    if (greetings_) greetings_->end();
  }
  delay_.cancel();
  membership_timer_.cancel();
  for (const auto& channel : channels_) {
    if (channel) channel->close();
  }
  for (PeerChannel* visit : visits_) visit->close();
}

}  // namespace dpwa
