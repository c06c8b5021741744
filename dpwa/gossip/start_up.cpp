#include "dpwa/gossip/start_up.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "dpwa/core/sample.h"
#include "dpwa/gossip/start_comparison.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto between_looks = std::chrono::milliseconds(25);
constexpr auto announce_every = std::chrono::seconds(2);

StartView view_of(const Greeted& greeted) {
  if (greeted.failure == PeerFailure::rejected) return {PeerStart::refused};
  // It has weights that nobody can take over: as good as not there.
  if (greeted.failure || greeted.quarantined) return {PeerStart::unreachable};
  const bool joining = greeted.welcome.state == wire::NodeState::joining;
  return {joining ? PeerStart::joining : PeerStart::ready, greeted.welcome.clock,
          greeted.welcome.lineage, 0};
}

std::string words_for(double distance, double usual) {
  char text[96];
  std::snprintf(text, sizeof text,
                "these weights are %.3g away from most others, where %.3g is usual", distance,
                usual);
  return text;
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
  const auto begun = SteadyClock::now();
  announced_ = begun;
  gossip_.publish_now(false);  // a full pull needs an own snapshot; nobody is served before `ready`
  const auto resumed_clock = gossip_.resumed_ ? std::optional(gossip_.clock_) : std::nullopt;
  if (!config.join.empty()) join();
  while (true) {
    const auto seen = look_around();
    std::vector<StartView> views;
    std::size_t self = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      views.push_back(seen[i].view);
      if (!seen[i].peer) self = i;
    }
    const Duration elapsed = SteadyClock::now() - begun;
    StartRuleOptions options;
    options.wait = config.gossip.start_wait;
    if (refused_by_all(views, self, elapsed >= options.wait)) {
      throw std::runtime_error("node '" + config.self +
                               "' was refused by every node that answered: " + refusal_);
    }
    const StartDecision decision = decide_start(views, self, resumed_clock, elapsed, options);
    // One that joins has come for the weights of others.
    const bool alone = config.is_joiner() && !gossip_.resumed_;
    if (decision.action == StartAction::begin && !alone) break;
    if (decision.action == StartAction::pull_from) {
      const PeerId peer = *seen[decision.peer].peer;
      if (pull_from(peer, seen, resumed_clock)) break;
      ++failed_pulls_[peer];
    }
    announce_waiting(seen);
    std::this_thread::sleep_for(between_looks);
  }
  if (gossip_.lineage_ == 0) gossip_.lineage_ = std::max<std::uint64_t>(1, gossip_.random_.next());
  gossip_.publish_now(false);
  gossip_.node_->local().state = wire::NodeState::ready;
  log(LogLevel::info, "gossip", "ready at clock " + std::to_string(gossip_.clock_));
}

void StartUp::join() {
  const Config& config = gossip_.config_;
  std::vector<PeerAddress> addresses;
  std::string places;
  for (const NodeEntry& node : config.join) {
    addresses.push_back({"", node.addresses, node.port});
    places += (places.empty() ? "" : ", ") + node.host + ":" + std::to_string(node.port);
  }
  const auto deadline = SteadyClock::now() + config.gossip.start_wait;
  std::string why;
  while (true) {
    const auto visited = gossip_.node_->client().visit_all(
        addresses, true, std::max<Duration>(config.gossip.timeout, std::chrono::seconds(1)));
    look_for_namesake(visited);
    bool joined = false;
    for (const Greeted& seed : visited) {
      if (seed.failure) {
        why = seed.detail;
        continue;
      }
      joined = true;
      gossip_.node_->local().members->keep(seed.welcome.node);
      log(LogLevel::info, "gossip", "joined by '" + seed.welcome.node + "'");
    }
    if (joined) return;
    const bool refused = std::ranges::all_of(visited, [](const Greeted& seed) {
      return seed.failure == PeerFailure::rejected && seed.reject != wire::RejectCode::own_name;
    });
    if (refused || SteadyClock::now() >= deadline) {
      throw std::runtime_error("node '" + config.self + "' cannot join by " + places + ": " +
                               (name_refused_ ? refusal_ : why));
    }
    std::this_thread::sleep_for(between_looks);
  }
}

// A refusal for the name may be of a moment (the last process under it has just ended), and nodes
// that have not heard of the other process do not refuse: so most must, for a while.
void StartUp::look_for_namesake(const std::vector<Greeted>& greeted) {
  constexpr auto patience = std::chrono::seconds(1);
  std::size_t refused = 0;
  std::size_t admitted = 0;
  for (const Greeted& peer : greeted) {
    if (peer.reject == wire::RejectCode::own_name) {
      ++refused;
      refusal_ = peer.detail;
    } else if (!peer.failure) {
      ++admitted;
    }
  }
  const auto now = SteadyClock::now();
  if (refused <= admitted) {
    // Who closes without a word has just said it.
    if (admitted > 0) name_refused_.reset();
    return;
  }
  if (!name_refused_) name_refused_ = now;
  if (now - *name_refused_ < patience) return;
  throw std::runtime_error("node '" + gossip_.config_.self + "' was refused: " + refusal_);
}

std::vector<StartUp::Seen> StartUp::look_around() {
  const Config& config = gossip_.config_;
  const auto greeted = gossip_.node_->client().greet_all(config.gossip.timeout);
  const auto members = gossip_.node_->local().members->all();
  std::vector<Greeted> seeds;  // whoever may join may do so under many names
  for (std::size_t peer = 0; peer < greeted.size() && peer < members.size(); ++peer)
    if (members[peer].seed) seeds.push_back(greeted[peer]);
  look_for_namesake(seeds);
  const auto indices = Node::file_indices(config);
  const bool joins = config.is_joiner();
  std::vector<Seen> seen;
  for (std::size_t peer = 0; peer < greeted.size(); ++peer) {
    if (greeted[peer].failure == PeerFailure::rejected) refusal_ = greeted[peer].detail;
    const bool of_file = peer < indices.size();
    // One that joined and does not answer is nothing to wait for.
    if (!greeted[peer].asked || (!of_file && greeted[peer].failure)) continue;
    if (peer == config.self_index() && !joins) seen.push_back({});
    const auto id = static_cast<PeerId>(peer);
    seen.push_back(
        {view_of(greeted[peer]), id, peer < members.size() ? members[peer].claim.name : ""});
    seen.back().view.failed_pulls = failed_pulls_[id];
    seen.back().view.joined = peer < members.size() && !members[peer].seed;
  }
  const bool placed = std::ranges::any_of(seen, [](const Seen& node) { return !node.peer; });
  if (!placed) seen.push_back({});
  return seen;
}

// Whoever is ahead is believed, unless its weights are as far from most others as no weights are
// from each other: those of another node, taken over first, tell what is usual.
bool StartUp::pull_from(PeerId best, const std::vector<Seen>& seen,
                        std::optional<double> resumed_clock) {
  const GossipConfig& gossip = gossip_.config_.gossip;
  const std::vector<PeerId> witnesses = witnesses_for(best, seen, resumed_clock);
  if (witnesses.empty()) return take_over(best);
  StartComparison comparison(gossip_.node_->client(), gossip_.blocks_, gossip.timeout);
  const auto compare = [&](std::uint32_t samples) {
    gossip_.publish_now(false);  // what pulls are compared with
    return comparison.median(witnesses, samples, gossip_.lineage_);
  };
  const PeerId other = witnesses.back();
  std::optional<double> usual;
  if (take_over(other)) {
    usual = compare(0);
  } else {
    ++failed_pulls_[other];
  }
  if (!take_over(best)) return false;
  const std::uint32_t samples = gossip.firewall.distance_samples;
  const auto distance = compare(samples);
  if (!usual || !distance || *distance <= gossip.firewall.distance_multiple * *usual) return true;
  log(LogLevel::warn, "gossip", words_for(*distance, *usual));
  if (!take_over(other)) return false;
  compare(samples);
  return true;
}

std::vector<PeerId> StartUp::witnesses_for(PeerId best, const std::vector<Seen>& seen,
                                           std::optional<double> resumed_clock) {
  constexpr std::size_t most_others = 4;
  const DistancePolicy policy = gossip_.config_.gossip.firewall.distance;
  if (policy != DistancePolicy::clip && policy != DistancePolicy::refuse) return {};
  const auto of_best = std::ranges::find(seen, std::optional(best), &Seen::peer);
  Sample<PeerId> others(most_others, gossip_.random_);
  for (const Seen& node : seen) {
    const StartView& view = node.view;
    const bool ready = view.state == PeerStart::ready && view.failed_pulls == 0;
    const bool behind = resumed_clock && !(view.clock >= *resumed_clock);
    if (!node.peer || node.peer == best || !ready || behind) continue;
    if (view.lineage != of_best->view.lineage) continue;
    others.offer(*node.peer);
  }
  if (others.values().size() < 2) return {};
  std::vector<PeerId> witnesses{best};
  witnesses.insert(witnesses.end(), others.values().begin(), others.values().end());
  return witnesses;
}

bool StartUp::take_over(PeerId peer) {
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

void StartUp::announce_waiting(const std::vector<Seen>& seen) {
  const auto now = SteadyClock::now();
  if (now - announced_ < announce_every) return;
  announced_ = now;
  std::string names;
  for (const Seen& node : seen) {
    if (!node.peer) continue;
    const PeerStart state = node.view.state;
    if (state != PeerStart::unknown && state != PeerStart::unreachable) continue;
    names += (names.empty() ? "'" : ", '") + node.name + "'";
  }
  log(LogLevel::info, "gossip",
      names.empty() ? "waiting for the node that brings the common weights"
                    : "waiting for " + names);
}

}  // namespace dpwa
