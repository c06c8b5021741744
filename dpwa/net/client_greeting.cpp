// What of Client concerns greeting: what every peer says of itself, before the first pull.

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "dpwa/core/sample.h"
#include "dpwa/net/client.h"
#include "dpwa/net/deadline.h"
#include "dpwa/net/rethrow.h"

namespace dpwa {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {
constexpr std::size_t max_greeted_at_once = 64;
constexpr std::size_t max_greeted_strangers = 8;
}  // namespace

std::vector<Greeted> Client::greet_all(Duration timeout) {
  std::unique_lock lock(mutex_);
  greetings_pending_ = 1;
  asio::post(io_, [this, timeout] {
    take_up_members();
    const auto left = std::make_shared<std::vector<PeerId>>(to_greet());
    {
      const std::lock_guard inner(mutex_);
      greeted_.assign(channels_.size(), {});
      greetings_pending_ = left->size();
      changed_.notify_all();
    }
    const std::size_t at_once = std::min(left->size(), max_greeted_at_once);
    for (std::size_t i = 0; i < at_once; ++i)
      asio::co_spawn(io_, greet_some(left, timeout), net::rethrow);
  });
  changed_.wait(lock, [this] { return greetings_pending_ == 0 || stopped_; });
  return greeted_;
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

asio::awaitable<void> Client::greet_some(std::shared_ptr<std::vector<PeerId>> left,
                                         Duration timeout) {
  while (!left->empty()) {
    const PeerId peer = left->back();
    left->pop_back();
    co_await greet(peer, timeout);
  }
}

asio::awaitable<void> Client::greet(PeerId peer, Duration timeout) {
  if (stopped()) co_return;  // nobody waits for it any more
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
  const std::lock_guard lock(mutex_);
  greeted_[peer] = {greeting.failure,
                    std::move(greeting.detail),
                    std::move(greeting.welcome),
                    greeting.reject,
                    table_.at(peer).held_until > SteadyClock::now(),
                    /*asked=*/true};
  --greetings_pending_;
  changed_.notify_all();
}

}  // namespace dpwa
