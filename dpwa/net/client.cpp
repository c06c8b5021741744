#include "dpwa/net/client.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>
#include <variant>

#include "dpwa/base/trace.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/peer_channels.h"
#include "dpwa/net/visits.h"

namespace dpwa {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr std::size_t max_greeted_at_once = 64;
// How late the Tx thread may be, because of its work in hand or a busy machine.
constexpr auto tx_thread_delay = std::chrono::seconds(2);

std::uint32_t whole_milliseconds(Duration left) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 1, 1 << 30));
}

Answer answer_of(const PullResult& result) {
  return {result.failure,
          result.detail,
          result.progress,
          result.bytes,
          result.incarnation,
          result.same_host,
          result.reject == wire::RejectCode::own_name};
}

LogLevel level_of(LogEntry::Weight weight) {
  switch (weight) {
    case LogEntry::Weight::debug:
      return LogLevel::debug;
    case LogEntry::Weight::info:
      return LogLevel::info;
    case LogEntry::Weight::warn:
      return LogLevel::warn;
  }
  return LogLevel::warn;
}

}  // namespace

Client::Client(asio::io_context& io, LocalNode& local, std::vector<PeerAddress> peers,
               ClientOptions options)
    : io_(io),
      local_(local),
      options_(std::move(options)),
      engine_(options_, local.peers),
      channels_(std::make_unique<PeerChannels>(io, local, std::move(peers), options_.chunk_bytes,
                                               options_.same_host)),
      visits_(
          std::make_unique<Visits>(io, local, *channels_, engine_, options_.seeds, options_.now)),
      delay_(io),
      landing_(local.manifest, options_.allocate) {}

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
  if (spec_.range && !spec_.block) spec_.block = 0;
  asio::post(io_, [this] {
    asio::co_spawn(io_, run_round(spec_), [this](std::exception_ptr failure) {
      if (failure) round_failed();
      net::rethrow(std::move(failure));
    });
  });
  return true;
}

bool Client::same_host(PeerId peer) const {
  return channels_->same_host(peer);
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
  {
    const MutexLock lock(mutex_);
    under_way_ = false;
    arrival_ = std::move(arrival);
  }
  changed_.notify_all();  // without the lock, which the trainer needs first
}

void Client::round_failed() {
  channels_->close();
  landing_.release();
  Arrival nothing;
  nothing.outcome = Outcome::unreachable;
  deliver(std::move(nothing));
}

bool Client::stopped() const {
  const MutexLock lock(mutex_);
  return stopped_;
}

asio::awaitable<void> Client::run_round(PullSpec spec) {
  thread_.check();
  if (spec.delay == Duration::zero()) hear_others();
  engine_.begin(spec);
  while (true) {
    PullEngine::Action action = engine_.next(local_.store.progress().clock, now());
    if (const auto* wait = std::get_if<PullEngine::Wait>(&action)) {
      delay_.expires_after(wait->time);
      co_await delay_.async_wait(net::as_result);
      hear_others();
    } else if (const auto* ask = std::get_if<PullEngine::Ask>(&action)) {
      co_await attempt(*ask, spec);
    } else {
      landing_.release();
      deliver(std::move(std::get<Arrival>(action)));
      co_return;
    }
  }
}

asio::awaitable<void> Client::attempt(PullEngine::Ask ask, const PullSpec& spec) {
  const auto held = channels_->keep(ask.peer);
  PeerChannel& channel = *held;
  const net::Deadline deadline(io_, SteadyClock::now() + ask.left, [&channel] { channel.close(); });
  const TraceScope traced(Track::pull, "pull", channel.name());
  const bool whole = spec.exchange.whole_model;
  PullRequest request;
  request.full = whole;
  request.for_final_average = spec.exchange.for_final_average;
  request.range = spec.range.value_or(
      ByteRange{0, whole ? local_.manifest.total_bytes() : local_.manifest.exchange_bytes()});
  if (!whole) request.codec = local_.codec;
  request.known_incarnation = ask.known_incarnation;
  request.known_version = ask.known_version;
  if (spec.exchange.blends()) request.taken = ask.taken;
  request.deadline_ms = whole_milliseconds(ask.left);
  const PullResult result = co_await pull(channel, request, spec.mode);
  Answer answer = answer_of(result);
  answer.keeps_ledger = channel.keeps_ledger();
  bool may_overflow = false;
  if (!answer.failure) {
    const auto scale = engine_.landed(answer, landing_.comparison(), compared_,
                                      [this] { return landing_.rounding_distance(); });
    may_overflow = scale && landing_.may_overflow(*scale);
  }
  const auto settled = engine_.settle(answer, deadline.expired(), may_overflow, now());
  if (settled.broke_protocol) channel.close();
  Traffic& traffic = local_.traffic;
  traffic.bytes_received += answer.bytes;
  if (!settled.failure && answer.same_host) ++traffic.same_host_pulls;
  if (settled.failure == PeerFailure::protocol) ++traffic.protocol_errors;
  tell_members(channel.name(), answer, settled.silent);
  write_log();
}

asio::awaitable<PullResult> Client::pull(PeerChannel& channel, PullRequest request,
                                         LandingMode mode) {
  PullResult result;
  do {
    {
      const TraceScope asks(Track::pull, "ask", channel.name());
      result = co_await channel.ask(request);
    }
    if (result.failure) break;
    const auto unwanted = engine_.head(result.progress, local_.store.progress().lineage);
    if (unwanted) {
      result = co_await channel.decline(*unwanted);
      break;
    }
    // Not the snapshot of the moment when the pull began: the peer answers with its latest, which
    // may be steps younger by then.
    auto own = local_.store.latest();
    compared_ = own->progress();
    landing_.begin(mode, std::move(own), request.range);
    const TraceScope lands(Track::pull, "land", channel.name());
    result = co_await channel.land(landing_);
  } while (result.ask_again);
  co_return result;
}

void Client::tell_members(const std::string& peer, const Answer& answer, bool silent) {
  if (silent) {
    local_.members->failed(peer);
  } else if (answer.incarnation != 0) {
    local_.members->reached(peer, answer.incarnation);
  }
  if (!answer.refuses_name || !engine_.evicted_by(local_.members->running_listed())) return;
  const MutexLock lock(mutex_);
  evicted_ = answer.detail;
  is_evicted_ = true;
}

void Client::take_up_members() {
  const std::uint64_t version = local_.members->version();
  if (!local_.members->exchanges() || version == members_version_) return;
  const auto news = local_.members->since(members_version_);
  for (const auto& [peer, member] : news.members) {
    const bool another = engine_.take_up(peer, member);
    channels_->take_up(peer, member.claim, another);
  }
  members_version_ = news.version;
  write_log();
}

void Client::hear_others() {
  take_up_members();
  if (!local_.keeps_ledger) return;
  local_.statements.take([this](const std::string& peer, const Statements::Statement& statement) {
    engine_.stated(peer, statement.incarnation, statement.taken);
  });
}

void Client::write_log() {
  for (const LogEntry& entry : engine_.take_log()) {
    const bool of_members = entry.subject == LogEntry::Subject::members;
    LogLimiter& limiter = of_members ? members_limiter_ : limiter_;
    const char* const subsystem = of_members ? "members" : "tx";
    if (entry.weight == LogEntry::Weight::debug) {
      log(limiter, entry.key, LogLevel::debug, subsystem, entry.text);
    } else {
      log_event(limiter, entry.key, entry.event, level_of(entry.weight), subsystem, entry.text);
    }
  }
}

std::optional<std::string> Client::evicted() const {
  if (!is_evicted_) return std::nullopt;
  const MutexLock lock(mutex_);
  return evicted_;
}

void Client::peer_called(const std::string& name, std::uint64_t incarnation) {
  thread_.check();
  engine_.called(name, incarnation);
  if (!engine_.table().find(name)) return;
  if (callers_.size() > local_.members->size())
    std::erase_if(callers_, [this](const auto& each) { return !engine_.table().find(each.first); });
  std::uint64_t& known = callers_[name];
  if (std::exchange(known, incarnation) == incarnation) return;
  const MutexLock lock(mutex_);
  new_caller_ = true;
  changed_.notify_all();
}

void Client::wait_for_new_caller(Duration longest) {
  const TimePoint until = SteadyClock::now() + longest;
  MutexLock lock(mutex_);
  while (!new_caller_ && !stopped_ && changed_.wait_until(lock, until)) {
  }
  new_caller_ = false;
}

std::shared_ptr<Greetings> Client::expect(std::size_t answers) {
  auto greetings = std::make_shared<Greetings>(answers);
  const MutexLock lock(mutex_);
  if (stopped_) return nullptr;
  greetings_ = greetings;
  return greetings;
}

std::vector<Greeted> Client::greet_all(Duration timeout) {
  const std::size_t peers = local_.members->size();
  const auto rounds = static_cast<int>(1 + peers / max_greeted_at_once);
  const auto greetings = expect(peers);
  if (!greetings) return std::vector<Greeted>(peers);
  asio::post(io_, [this, timeout, work = Greetings::begin(greetings)] {
    take_up_members();
    auto peers = engine_.to_greet(local_.members->all());
    std::ranges::reverse(peers);  // they are taken from the end
    const auto left = std::make_shared<std::vector<PeerId>>(std::move(peers));
    const std::size_t at_once = std::min(left->size(), max_greeted_at_once);
    for (std::size_t i = 0; i < at_once; ++i)
      asio::co_spawn(io_, greet_some(work, left, timeout), net::rethrow);
  });
  return greetings->wait(rounds * timeout + tx_thread_delay);
}

asio::awaitable<void> Client::greet_some(Greetings::Work work,
                                         std::shared_ptr<std::vector<PeerId>> left,
                                         Duration timeout) {
  while (!left->empty() && !stopped()) {
    const PeerId peer = left->back();
    left->pop_back();
    auto answer = co_await greet(peer, timeout);
    work->put(peer, std::move(answer));
  }
}

asio::awaitable<Greeted> Client::greet(PeerId peer, Duration timeout) {
  const auto held = channels_->get(peer);
  PeerChannel& channel = *held;
  const net::Deadline deadline(io_, SteadyClock::now() + timeout, [&channel] { channel.close(); });
  auto greeting = co_await channel.greet();
  if (engine_.table().size() > PeerChannels::max_connected) channel.close();
  if (!greeting.failure) local_.members->reached(channel.name(), greeting.welcome.incarnation);
  if (greeting.failure == PeerFailure::rejected) {
    engine_.refused(peer, greeting.detail);
    write_log();
  }
  Greeted answer{greeting.failure, std::move(greeting.detail), std::move(greeting.welcome),
                 greeting.reject,
                 /*asked=*/true};
  co_return answer;
}

std::vector<Greeted> Client::visit_all(const std::vector<PeerAddress>& addresses, bool all,
                                       Duration timeout) {
  const auto greetings = expect(addresses.size());
  if (!greetings) return std::vector<Greeted>(addresses.size());
  asio::post(io_, [=, this, work = Greetings::begin(greetings)] {
    visits_->visit_all(work, addresses, all, timeout);
  });
  return greetings->wait(timeout + tx_thread_delay);
}

std::vector<PeerAddress> Client::unmet_seeds() const {
  return net::unmet_seeds(options_.seeds, local_.members->self(), local_.members->all());
}

void Client::begin_membership() {
  thread_.check();
  visits_->begin();
}

void Client::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    if (greetings_) greetings_->end();
  }
  thread_.check();
  engine_.stop();
  delay_.cancel();
  channels_->close();
  visits_->stop();
}

}  // namespace dpwa
