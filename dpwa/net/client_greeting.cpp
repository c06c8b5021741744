// What of Client concerns greeting: what every peer says of itself, before the first pull.

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <new>
#include <utility>

#include "dpwa/net/client.h"
#include "dpwa/net/deadline.h"
#include "dpwa/net/rethrow.h"
#include "dpwa/rules/sample.h"

namespace dpwa {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {
constexpr std::size_t max_greeted_at_once = 64;
constexpr std::size_t max_greeted_strangers = 8;
// How late the Tx thread may be for all that: what it has in hand, or a machine that is busy.
constexpr auto tx_thread_delay = std::chrono::seconds(2);
}  // namespace

std::vector<Greeted> Client::gather(std::size_t size, Duration bound,
                                    const std::function<void(Greetings::Work)>& post) {
  const auto greetings = std::make_shared<Greetings>(size);
  {
    const MutexLock lock(mutex_);
    if (stopped_) return std::vector<Greeted>(size);
    greetings_ = greetings;
  }
  post(Greetings::begin(greetings));
  return greetings->wait(bound + tx_thread_delay);
}

std::vector<Greeted> Client::greet_all(Duration timeout) {
  const std::size_t peers = local_.members->all().size();
  const auto rounds = static_cast<int>(1 + peers / max_greeted_at_once);
  return gather(peers, rounds * timeout, [this, timeout](Greetings::Work work) {
    asio::post(io_, [this, timeout, work = std::move(work)] {
      take_up_members();
      const auto left = std::make_shared<std::vector<PeerId>>(to_greet());
      const std::size_t at_once = std::min(left->size(), max_greeted_at_once);
      for (std::size_t i = 0; i < at_once; ++i)
        asio::co_spawn(io_, greet_some(work, left, timeout), net::rethrow_unless_refused);
    });
  });
}

// In the order of their ids, strangers last.
std::vector<PeerId> Client::to_greet() {
  std::vector<PeerId> peers;
  Sample<PeerId> strangers(max_greeted_strangers, random_);
  const auto members = local_.members->all();
  for (PeerId peer = 0; peer < channels_.size(); ++peer) {
    if (peer >= members.size() || members[peer].vouched_for()) {
      peers.push_back(peer);
    } else if (!members[peer].claim.name.empty()) {
      strangers.offer(peer);
    }
  }
  peers.insert(peers.end(), strangers.values().begin(), strangers.values().end());
  std::ranges::reverse(peers);  // they are taken from the end
  return peers;
}

asio::awaitable<void> Client::greet_some(Greetings::Work work,
                                         std::shared_ptr<std::vector<PeerId>> left,
                                         Duration timeout) {
  while (!left->empty() && !stopped()) {
    const PeerId peer = left->back();
    left->pop_back();
    try {
      auto answer = co_await greet(peer, timeout);
      work->put(peer, std::move(answer));
    } catch (const std::bad_alloc&) {  // to this peer alone
    }
  }
}

asio::awaitable<Greeted> Client::greet(PeerId peer, Duration timeout) {
  const auto held = channels_[peer];
  PeerChannel& channel = *held;
  const net::Deadline deadline(io_, SteadyClock::now() + timeout, [&channel] { channel.close(); });
  auto greeting = co_await channel.greet();
  if (channels_.size() > max_kept_connections) channel.close();
  if (!greeting.failure) local_.members->reached(channel.name(), greeting.welcome.incarnation);
  if (greeting.failure == PeerFailure::rejected) {
    PullResult refused;
    refused.failure = greeting.failure;
    refused.detail = greeting.detail;
    report(peer, refused);
  }
  Greeted answer{greeting.failure, std::move(greeting.detail),         std::move(greeting.welcome),
                 greeting.reject,  table_.at(peer).held_until > now(),
                 /*asked=*/true};
  co_return answer;
}

}  // namespace dpwa
