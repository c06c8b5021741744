#include "dpwa/net/visits.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <utility>

#include "dpwa/base/backoff.h"
#include "dpwa/base/on_exit.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/peer_channels.h"

namespace dpwa {

namespace asio = boost::asio;

namespace {

constexpr auto tick = std::chrono::milliseconds(500);
constexpr Backoff between_seed_visits{tick, std::chrono::seconds(10), 0};
// As long as one pull may take by default; most of the visited nodes are gone.
constexpr auto probe_timeout = std::chrono::milliseconds(500);

}  // namespace

Visits::Visits(asio::io_context& io, LocalProcess& local, PeerChannels& channels,
               PullEngine& engine, SeedPlaces seeds, TimeSource now)
    : io_(io),
      local_(local),
      channels_(channels),
      engine_(engine),
      seeds_(std::move(seeds)),
      now_(std::move(now)),
      timer_(io) {}

void Visits::begin() {
  thread_.check();
  if (local_.members->exchanges() && !stopped_) asio::co_spawn(io_, run(), net::rethrow);
}

void Visits::stop() {
  thread_.check();
  stopped_ = true;
  timer_.cancel();
  for (PeerChannel* channel : under_way_) channel->close();
}

asio::awaitable<void> Visits::run() {
  while (!stopped_) {
    timer_.expires_after(tick);
    co_await timer_.async_wait(net::as_result);
    if (stopped_) break;
    begin_probes();
    const TimePoint now = now_();
    if (seeds_.seeds.empty() || now < next_seed_visit_) continue;
    next_seed_visit_ = now + between_seed_visits.nominal(++seed_visits_);
    begin_seed_visits();
  }
}

// In turn, as most may lead to nobody.
void Visits::begin_seed_visits() {
  constexpr std::size_t most = 8;
  const auto unmet = net::unmet_seeds(seeds_, local_.members->self(), local_.members->all());
  for (std::size_t i = 0; i < std::min(most, unmet.size()); ++i)
    asio::co_spawn(io_, visit_seed(unmet[next_seed_++ % unmet.size()]), net::rethrow);
}

asio::awaitable<void> Visits::visit_seed(PeerAddress address) {
  if (stopped_) co_return;
  Greeted result;
  co_await visit(std::move(address), true, probe_timeout, result);
}

void Visits::begin_probes() {
  thread_.check();
  auto members = local_.members->tick();
  for (MemberClaim& member : members) {
    if (member.addresses.empty() || probed_.contains(member.name)) continue;
    asio::co_spawn(io_, probe(std::move(member)), net::rethrow);
  }
}

asio::awaitable<void> Visits::probe(MemberClaim member) {
  if (stopped_) co_return;
  probed_.insert(member.name);
  const OnExit forget([this, &member] { probed_.erase(member.name); });
  PeerAddress address{member.name, member.addresses, member.port,
                      local_.members->host_of(member.name)};
  Greeted result;
  co_await visit(std::move(address), false, probe_timeout, result);
  // A refusal that is not a REJECT: another node answers at the address that was reported for this
  // one.
  const bool another = result.failure == PeerFailure::rejected && !result.reject;
  if (another || result.failure == PeerFailure::unreachable ||
      result.failure == PeerFailure::timed_out) {
    local_.members->failed(member.name);
  } else if (!result.failure) {
    engine_.reached(member.name, result.welcome.incarnation, now_());
  }
}

asio::awaitable<void> Visits::visit(PeerAddress address, bool all, Duration timeout,
                                    Greeted& result) {
  PeerChannel channel = channels_.apart(std::move(address));
  const TimePoint until = std::chrono::steady_clock::now() + timeout;
  const net::Deadline deadline(io_, until, [&channel] { channel.close(); });
  under_way_.push_back(&channel);
  const OnExit over([this, &channel] { std::erase(under_way_, &channel); });
  auto greeting = co_await channel.greet();
  if (!greeting.failure) {
    local_.members->reached(channel.name(), greeting.welcome.incarnation);
    const auto exchanged = co_await channel.exchange_members(all);
    greeting.failure = exchanged.failure;
    greeting.detail = exchanged.detail;
    greeting.reject = exchanged.reject;
  }
  if (greeting.failure && deadline.expired()) {
    greeting.failure = PeerFailure::timed_out;
    greeting.detail = "no answer in time";
  }
  result = {greeting.failure, std::move(greeting.detail), std::move(greeting.welcome),
            greeting.reject, /*asked=*/true};
  channel.close();
}

asio::awaitable<void> Visits::visit_for(Greetings::Work work, PeerAddress address, bool all,
                                        Duration timeout, std::size_t index) {
  if (stopped_) co_return;  // no caller waits for it any more
  Greeted result;
  co_await visit(std::move(address), all, timeout, result);
  work->put(index, std::move(result));
}

void Visits::visit_all(const Greetings::Work& work, const std::vector<PeerAddress>& addresses,
                       bool all, Duration timeout) {
  thread_.check();
  for (std::size_t i = 0; i < addresses.size(); ++i)
    asio::co_spawn(io_, visit_for(work, addresses[i], all, timeout, i), net::rethrow);
}

}  // namespace dpwa
