#include "dpwa/gossip/start_up.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto pause = std::chrono::milliseconds(25);  // between two looks around
constexpr auto announce_every = std::chrono::seconds(2);

StartView view_of(const Greeted& greeted) {
  if (greeted.failure == PeerFailure::rejected) return {PeerStart::refused};
  // It has weights that nobody can take over: as good as not there.
  if (greeted.failure || greeted.quarantined) return {PeerStart::unreachable};
  const bool joining = greeted.welcome.state == wire::NodeState::joining;
  return {joining ? PeerStart::joining : PeerStart::ready, greeted.welcome.clock,
          greeted.welcome.lineage, 0};
}

bool refused_by_all(const std::vector<StartView>& views, std::size_t self, bool waited) {
  bool refused = false;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (i == self) continue;
    const PeerStart state = views[i].state;
    if (state == PeerStart::joining || state == PeerStart::ready) return false;
    if (state != PeerStart::refused && !waited) return false;
    refused = refused || state == PeerStart::refused;
  }
  return refused;
}

}  // namespace

void StartUp::run() {
  const Config& config = gossip_.config_;
  const std::size_t self = config.self_index();
  const auto begun = SteadyClock::now();
  announced_ = begun;
  failed_pulls_.assign(config.nodes.size(), 0);
  gossip_.publish_now(false);  // a full pull needs an own snapshot; nobody is served before `ready`
  const auto resumed_clock = gossip_.resumed_ ? std::optional(gossip_.clock_) : std::nullopt;
  while (true) {
    const auto views = look_around();
    const Duration elapsed = SteadyClock::now() - begun;
    StartRuleOptions options;
    options.wait = config.gossip.start_wait;
    if (refused_by_all(views, self, elapsed >= options.wait)) {
      throw std::runtime_error("node '" + config.self +
                               "' was refused by every node that answered: " + refusal_);
    }
    const StartDecision decision = decide_start(views, self, resumed_clock, elapsed, options);
    if (decision.action == StartAction::begin) break;
    if (decision.action == StartAction::pull_from) {
      if (pull_from(decision.peer)) break;
      ++failed_pulls_[decision.peer];
    }
    announce_waiting(views);
    std::this_thread::sleep_for(pause);
  }
  if (gossip_.lineage_ == 0) gossip_.lineage_ = std::max<std::uint64_t>(1, gossip_.random_.next());
  gossip_.publish_now(false);
  gossip_.node_->local().state = wire::NodeState::ready;
  log(LogLevel::info, "gossip", "ready at clock " + std::to_string(gossip_.clock_));
}

std::vector<StartView> StartUp::look_around() {
  const Config& config = gossip_.config_;
  std::vector<StartView> views(config.nodes.size());
  const auto indices = Node::file_indices(config);
  const auto greeted = gossip_.node_->client().greet_all(config.gossip.timeout);
  for (std::size_t peer = 0; peer < greeted.size(); ++peer) {
    views[indices[peer]] = view_of(greeted[peer]);
    views[indices[peer]].failed_pulls = failed_pulls_[indices[peer]];
    if (greeted[peer].failure == PeerFailure::rejected) refusal_ = greeted[peer].detail;
  }
  return views;
}

bool StartUp::pull_from(std::size_t file_index) {
  const auto indices = Node::file_indices(gossip_.config_);
  const auto peer = static_cast<PeerId>(std::ranges::find(indices, file_index) - indices.begin());
  const PullSpec spec =
      full_pull(peer, std::max(gossip_.config_.gossip.timeout, gossip_.config_.gossip.start_wait));
  Client& client = gossip_.node_->client();
  if (!client.begin(spec)) return false;
  const auto arrival = client.take(spec.timeout * 2);
  if (!arrival || arrival->outcome != Outcome::mixed) return false;
  gossip_.adopt(*arrival);
  log(LogLevel::info, "gossip",
      "took over the weights of '" + arrival->peer_name + "' at clock " +
          std::to_string(arrival->progress.clock));
  return true;
}

void StartUp::announce_waiting(const std::vector<StartView>& views) {
  const auto now = SteadyClock::now();
  if (now - announced_ < announce_every) return;
  announced_ = now;
  std::string names;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (i == gossip_.config_.self_index()) continue;
    if (views[i].state != PeerStart::unknown && views[i].state != PeerStart::unreachable) continue;
    names += (names.empty() ? "'" : ", '") + gossip_.config_.nodes[i].name + "'";
  }
  log(LogLevel::info, "gossip",
      names.empty() ? "waiting for the node that brings the common weights"
                    : "waiting for " + names);
}

}  // namespace dpwa
