// What of Client concerns membership.

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <new>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/net/as_result.h"
#include "dpwa/net/client.h"
#include "dpwa/net/deadline.h"
#include "dpwa/net/on_exit.h"
#include "dpwa/net/rethrow.h"

namespace dpwa {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr auto tick = std::chrono::milliseconds(500);
// As long as one pull may take by default; those that it is for are mostly gone.
constexpr auto probe_timeout = std::chrono::milliseconds(500);

bool is_out(MemberStatus status) {
  return status == MemberStatus::dead || status == MemberStatus::left;
}

std::string words_for(MemberStatus status) {
  switch (status) {
    case MemberStatus::alive:
      return "' is there";
    case MemberStatus::suspect:
      return "' does not answer";
    case MemberStatus::dead:
      return "' is gone: it is not pulled from until it is back";
    case MemberStatus::left:
      return "' has left";
  }
  return "'";
}

}  // namespace

void Client::take_up_members() {
  const std::uint64_t version = local_.members->version();
  if (!local_.members->exchanges() || version == members_version_) return;
  const auto members = local_.members->all();
  for (PeerId peer = 0; peer < members.size(); ++peer) {
    const MemberClaim& claim = members[peer].claim;
    const bool is_new = peer >= channels_.size() || peer >= table_.size() || !channels_[peer] ||
                        table_.at(peer).name != claim.name;
    if (is_new) {
      table_.put(peer, claim.name);
      firewall_.put(peer);
      staleness_.forget(peer);
      channels_.resize(std::max<std::size_t>(channels_.size(), peer + 1));
      seen_.resize(channels_.size());
      refused_name_.resize(channels_.size());
      introduced_.resize(channels_.size());
      introduced_[peer] = false;
      seen_[peer] = {};
      refused_name_[peer] = false;
    }
    const bool moved = channels_[peer] && !claim.addresses.empty() &&
                       (channels_[peer]->address().addresses != claim.addresses ||
                        channels_[peer]->address().port != claim.port);
    if (is_new || moved) {
      PeerAddress address{claim.name, claim.addresses, claim.port};
      // A coroutine may hold it: what it does there ends.
      if (channels_[peer]) channels_[peer]->close();
      channels_[peer] =
          std::make_shared<PeerChannel>(io_, local_, std::move(address),
                                        options_.congestion_control, staging_, options_.same_host);
    }
    const bool out =
        claim.name.empty() || is_out(members[peer].status()) || !members[peer].vouched_for();
    const bool changed = is_new || out != table_.at(peer).out;
    table_.set_out(peer, out);
    if (!changed || claim.name.empty() || (out && !introduced_[peer])) continue;
    tell_of(claim.name, introduced_[peer] ? words_for(members[peer].status()) : "' joined");
    introduced_[peer] = true;
  }
  members_version_ = version;  // not before: where memory is refused, all of it is done again
}

void Client::tell_of(const std::string& member, const std::string& news) {
  const auto held_back = members_limiter_.pass(member + news, SteadyClock::now());
  if (held_back) log(LogLevel::info, "members", "'" + member + news + since_words(*held_back));
}

void Client::tell_members(PeerId peer, const PullResult& result) {
  const std::string& name = channels_[peer]->name();
  const bool silent = result.failure == PeerFailure::unreachable ||
                      (result.failure == PeerFailure::timed_out && result.bytes == 0);
  if (silent) {
    local_.members->failed(name);
  } else if (result.incarnation != 0) {
    local_.members->reached(name, result.incarnation);
  }
  note_refusal(peer, result);
}

void Client::note_refusal(PeerId peer, const PullResult& result) {
  refused_name_[peer] = result.reject == wire::RejectCode::own_name;
  if (!refused_name_[peer]) return;
  std::size_t refusing = 0;
  std::size_t others = 0;
  const auto members = local_.members->all();
  for (PeerId other = 0; other < table_.size(); ++other) {
    // Not those that joined: whoever may join may do so under many names.
    if (table_.at(other).out || other >= members.size() || !members[other].seed) continue;
    ++(refused_name_[other] ? refusing : others);
  }
  if (refusing <= others) return;
  const MutexLock lock(mutex_);
  evicted_ = result.detail;
  is_evicted_ = true;
}

std::optional<std::string> Client::evicted() const {
  if (!is_evicted_) return std::nullopt;
  const MutexLock lock(mutex_);
  return evicted_;
}

void Client::begin_membership() {
  membership_wanted_ = local_.members->exchanges();
  resume();
}

void Client::resume() {
  if (membership_wanted_ && !membership_runs_ && !stopped())
    asio::co_spawn(io_, run_membership(), net::rethrow);
}

asio::awaitable<void> Client::run_membership() {
  membership_runs_ = true;
  const net::OnExit over([this] { membership_runs_ = false; });
  while (!stopped()) {
    membership_timer_.expires_after(tick);
    co_await membership_timer_.async_wait(net::as_result);
    if (stopped()) break;
    begin_probes();
  }
}

// Where memory is refused there are no probes this time.
void Client::begin_probes() {
  try {
    auto members = local_.members->tick();
    for (MemberClaim& member : members) {
      if (member.addresses.empty() || probed_.contains(member.name)) continue;
      asio::co_spawn(io_, probe(std::move(member)), net::rethrow_unless_refused);
    }
  } catch (const std::bad_alloc&) {
  }
}

asio::awaitable<void> Client::probe(MemberClaim member) {
  if (stopped()) co_return;
  probed_.insert(member.name);
  const net::OnExit forget([this, &member] { probed_.erase(member.name); });
  PeerAddress address{member.name, member.addresses, member.port};
  Greeted result;
  co_await visit(std::move(address), false, probe_timeout, result);
  // A refusal that is no REJECT: another node, which may have been said to be this one, answers
  // there.
  const bool another = result.failure == PeerFailure::rejected && !result.reject;
  if (another || result.failure == PeerFailure::unreachable ||
      result.failure == PeerFailure::timed_out) {
    local_.members->failed(member.name);
  } else if (!result.failure) {
    const auto peer = table_.find(member.name);
    if (peer) table_.reached(*peer, result.welcome.incarnation, now());
  }
}

asio::awaitable<void> Client::visit(PeerAddress address, bool all, Duration timeout,
                                    Greeted& result) {
  PeerChannel channel(io_, local_, std::move(address), options_.congestion_control, staging_,
                      /*same_host=*/false);
  const TimePoint until = SteadyClock::now() + timeout;
  const net::Deadline deadline(io_, until, [&channel] { channel.close(); });
  visits_.push_back(&channel);
  const net::OnExit over([this, &channel] { std::erase(visits_, &channel); });
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
            greeting.reject,  /*quarantined=*/false,      /*asked=*/true};
  channel.close();
}

asio::awaitable<void> Client::visit_for(Greetings::Work work, PeerAddress address, bool all,
                                        Duration timeout, std::size_t index) {
  if (stopped()) co_return;  // nobody waits for it any more
  Greeted result;
  co_await visit(std::move(address), all, timeout, result);
  work->put(index, std::move(result));
}

std::vector<Greeted> Client::visit_all(const std::vector<PeerAddress>& addresses, bool all,
                                       Duration timeout) {
  return gather(addresses.size(), timeout, [=, this](Greetings::Work work) {
    asio::post(io_, [=, this, work = std::move(work)] {
      for (std::size_t i = 0; i < addresses.size(); ++i) {
        asio::co_spawn(io_, visit_for(work, addresses[i], all, timeout, i),
                       net::rethrow_unless_refused);
      }
    });
  });
}

}  // namespace dpwa
