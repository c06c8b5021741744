#include "dpwa/gossip/start_up.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <utility>

#include "dpwa/gossip/start_comparison.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/sample.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto between_looks = std::chrono::milliseconds(25);

StartView view_of(const Greeted& greeted) {
  if (greeted.failure == PeerFailure::rejected) return {PeerStart::refused};
  // It has weights that nobody can take over: as good as not there.
  if (greeted.failure || greeted.quarantined) return {PeerStart::unreachable};
  const wire::Welcome& welcome = greeted.welcome;
  const bool begun = welcome.state != wire::NodeState::joining;
  if (!begun && welcome.lineage == 0) return {PeerStart::joining};
  return {begun ? PeerStart::ready : PeerStart::waiting, welcome.clock, welcome.lineage};
}

std::string words_for(double distance, double usual) {
  char text[96];
  std::snprintf(text, sizeof text,
                "these weights are %.3g away from most others, where %.3g is usual", distance,
                usual);
  return text;
}

}  // namespace

StartUp::StartUp(Gossip& gossip, TimePoint begun) : gossip_(gossip), begun_(begun) {
  const GossipConfig& config = gossip.config_.gossip;
  options_.wait = config.start_wait;
  options_.limit = 2 * config.start_wait + 4 * config.timeout;
  options_.min_nodes = config.min_nodes;
  // One that joins has come for the weights of others.
  options_.may_bring = !gossip.config_.is_joiner();
}

Duration StartUp::elapsed() const {
  return SteadyClock::now() - begun_;
}

void StartUp::run() {
  announced_ = SteadyClock::now();
  if (gossip_.resumed_) {
    if (gossip_.lineage_ == 0) gossip_.lineage_ = gossip_.new_lineage();
    own_ = StartWeights{gossip_.clock_, gossip_.lineage_, true};
  }
  // A full pull needs an own snapshot. Without a lineage nobody takes it for weights to begin with,
  // and nobody begins before this node has looked around once.
  const auto lineage = std::exchange(gossip_.lineage_, 0);
  gossip_.publish_now(false);
  gossip_.lineage_ = lineage;
  if (!gossip_.config_.join.empty()) join();
  while (true) {
    const auto seen = look_around();
    give_up_if_refused(seen);
    if (act(seen)) {
      report_absent(seen);
      break;
    }
    announce_waiting(seen);
    std::this_thread::sleep_for(between_looks);
  }
  show_weights();
  gossip_.node_->local().state = wire::NodeState::ready;
  log(LogLevel::info, "gossip", "ready at clock " + std::to_string(gossip_.clock_));
}

bool StartUp::act(const std::vector<Seen>& seen) {
  while (true) {
    if (!shown_) show_weights();
    const StartDecision decision = decide(seen);
    switch (decision.action) {
      case StartAction::begin:
        return true;
      case StartAction::give_up:
        throw std::runtime_error(shortfall(seen));
      case StartAction::wait:
        return false;
      case StartAction::bring:
        bring_weights();
        break;
      case StartAction::pull_from:
        if (!pull_from(seen[decision.peer], seen)) return false;
        break;
    }
  }
}

StartDecision StartUp::decide(const std::vector<Seen>& seen) const {
  std::vector<StartView> views;
  std::size_t self = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    views.push_back(seen[i].view);
    if (!seen[i].peer) {
      self = i;
    } else if (const auto known = memory_.find(*seen[i].peer); known != memory_.end()) {
      views.back().failed_pulls = known->second.failed_pulls;
      views.back().taken_over = known->second.taken_over;
      views.back().together = known->second.together;
    }
  }
  return decide_start(views, self, own_, elapsed(), options_);
}

void StartUp::bring_weights() {
  gossip_.lineage_ = gossip_.new_lineage();
  own_ = StartWeights{gossip_.clock_, gossip_.lineage_, false};
  shown_ = false;
}

void StartUp::show_weights() {
  if (!shown_ && own_) shown_ = gossip_.publish_now(false);
}

void StartUp::give_up_if_refused(const std::vector<Seen>& seen) const {
  const bool waited = elapsed() >= options_.wait;
  bool refused = false;
  for (const Seen& node : seen) {
    if (!node.peer) continue;
    if (answered(node.view.state)) return;
    if (node.view.state != PeerStart::refused && !waited) return;
    refused = refused || node.view.state == PeerStart::refused;
  }
  if (!refused) return;
  throw std::runtime_error("node '" + gossip_.config_.self +
                           "' was refused by every node that answered: " + refusal_);
}

void StartUp::join() {
  const Config& config = gossip_.config_;
  std::vector<PeerAddress> addresses;
  std::string places;
  for (const NodeEntry& node : config.join) {
    addresses.push_back({"", node.addresses, node.port});
    places += (places.empty() ? "" : ", ") + node.host + ":" + std::to_string(node.port);
  }
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
    if (refused || elapsed() >= options_.wait) {
      throw std::runtime_error("node '" + config.self + "' cannot join by " + places + ": " +
                               (name_refused_ ? refusal_ : why));
    }
    std::this_thread::sleep_for(between_looks);
  }
}

// A refusal for the name may be of a moment (the last process under it has just ended), and nodes
// that have not heard of the other process do not refuse: so most must, for a while. Before the
// wait is over that is most of those that could answer: one alone turns nobody away.
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
  if (elapsed() < options_.wait && 2 * refused <= greeted.size()) return;
  if (now - *name_refused_ < patience) return;
  throw std::runtime_error("node '" + gossip_.config_.self + "' was refused: " + refusal_);
}

std::vector<StartUp::Seen> StartUp::look_around() {
  const Config& config = gossip_.config_;
  const auto from = SteadyClock::now();
  const auto greeted = gossip_.node_->client().greet_all(config.gossip.timeout);
  const bool prompt = SteadyClock::now() - from < config.gossip.timeout;
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
    const wire::Welcome& welcome = greeted[peer].welcome;
    if (!greeted[peer].failure && peer < members.size() && members[peer].seed &&
        welcome.lineage != 0) {
      gossip_.note_lineage(members[peer].claim.name, welcome.lineage, welcome.clock);
    }
    // One that joined and does not answer is nothing to wait for.
    if (!greeted[peer].asked || (!of_file && greeted[peer].failure)) continue;
    if (peer == config.self_index() && !joins) seen.push_back({});
    seen.push_back(seen_of(static_cast<PeerId>(peer), greeted[peer], members, prompt));
  }
  const bool placed = std::ranges::any_of(seen, [](const Seen& node) { return !node.peer; });
  if (!placed) seen.push_back({});
  return seen;
}

// `prompt`: the look ended before its deadline, so a peer that is unreachable does not run.
StartUp::Seen StartUp::seen_of(PeerId peer, const Greeted& greeted,
                               const std::vector<Member>& members, bool prompt) {
  Seen seen{view_of(greeted), peer, peer < members.size() ? members[peer].claim.name : ""};
  seen.view.joined = peer < members.size() && !members[peer].seed;
  const PeerStart state = seen.view.state;
  if (state == PeerStart::joining || state == PeerStart::waiting ||
      (prompt && greeted.failure == PeerFailure::unreachable)) {
    memory_[peer].together = true;
  }
  return seen;
}

bool StartUp::pull_from(const Seen& best, const std::vector<Seen>& seen) {
  const Pull pull = pull_and_compare(best, seen);
  count(*best.peer, pull);
  if (pull != Pull::taken) return false;
  own_ = StartWeights{gossip_.clock_, gossip_.lineage_, false};
  shown_ = false;
  return true;
}

// A peer may be busy with others that start as well; one that is so for long gives nothing.
void StartUp::count(PeerId peer, Pull pull) {
  Memory& memory = memory_[peer];
  const auto now = SteadyClock::now();
  if (pull == Pull::taken) ++memory.taken_over;
  if (pull == Pull::failed) ++memory.failed_pulls;
  if (pull != Pull::busy) return;
  if (!memory.busy) memory.busy = now;
  if (now - *memory.busy < options_.wait / 8) return;
  ++memory.failed_pulls;
  memory.busy = now;
}

// Whoever is ahead is believed, unless its weights are as far from most others as no weights are
// from each other: those of another node, taken over first, tell what is usual.
StartUp::Pull StartUp::pull_and_compare(const Seen& best, const std::vector<Seen>& seen) {
  const GossipConfig& gossip = gossip_.config_.gossip;
  const bool trains = best.view.state == PeerStart::ready;
  const std::vector<PeerId> witnesses = witnesses_for(*best.peer, seen);
  if (witnesses.empty()) return take_over(*best.peer, trains);
  StartComparison comparison(gossip_.node_->client(), gossip_.blocks_, gossip.timeout,
                             begun_ + options_.limit);
  const auto compare = [&](std::uint32_t samples) {
    gossip_.publish_now(false);  // what pulls are compared with
    return comparison.median(witnesses, samples, gossip_.lineage_);
  };
  const PeerId other = witnesses.back();
  const Pull of_other = take_over(other, trains);
  std::optional<double> usual;
  if (of_other == Pull::taken) {
    usual = compare(0);
  } else {
    count(other, of_other);
  }
  const Pull of_best = take_over(*best.peer, trains);
  // The others' weights are as good, then.
  if (of_best != Pull::taken) return of_other == Pull::taken ? Pull::taken : of_best;
  const std::uint32_t samples = gossip.firewall.distance_samples;
  const auto distance = compare(samples);
  if (!usual || !distance || *distance <= gossip.firewall.distance_multiple * *usual)
    return Pull::taken;
  // Others that have not taken a step yet are all alike, and the first that has is away from them.
  log(*usual > 0 ? LogLevel::warn : LogLevel::info, "gossip", words_for(*distance, *usual));
  if (take_over(other, trains) != Pull::taken) return Pull::failed;
  compare(samples);
  return Pull::taken;
}

std::vector<PeerId> StartUp::witnesses_for(PeerId best, const std::vector<Seen>& seen) {
  constexpr std::size_t most_others = 4;
  const DistancePolicy policy = gossip_.config_.gossip.firewall.distance;
  if (policy != DistancePolicy::clip && policy != DistancePolicy::refuse) return {};
  const auto of_best = std::ranges::find(seen, std::optional(best), &Seen::peer);
  Sample<PeerId> others(most_others, gossip_.random_);
  for (const Seen& node : seen) {
    const StartView& view = node.view;
    const auto known = node.peer ? memory_.find(*node.peer) : memory_.end();
    const bool failed = known != memory_.end() && known->second.failed_pulls > 0;
    const bool ready = view.state == PeerStart::ready && !failed;
    const bool behind = own_ && own_->resumed && !(view.clock >= own_->clock);
    if (!node.peer || node.peer == best || !ready || behind) continue;
    if (view.lineage != of_best->view.lineage) continue;
    others.offer(*node.peer);
  }
  if (others.values().size() < 2) return {};
  std::vector<PeerId> witnesses{best};
  witnesses.insert(witnesses.end(), others.values().begin(), others.values().end());
  return witnesses;
}

// A pull may take half of what is left: so one that hangs leaves time for another one. Where nobody
// trains, all of it has to end with the wait, as others wait for this node.
StartUp::Pull StartUp::take_over(PeerId peer, bool trains) {
  const GossipConfig& config = gossip_.config_.gossip;
  const Duration left = (trains ? options_.limit : options_.wait) - elapsed();
  const Duration longest = std::max(config.timeout, config.start_wait);
  const PullSpec spec = full_pull(peer, std::clamp<Duration>(left / 2, config.timeout, longest));
  Client& client = gossip_.node_->client();
  if (!client.begin(spec)) return Pull::failed;
  const auto arrival = client.take(spec.timeout * 2);
  if (!arrival) return Pull::failed;
  const bool declined = arrival->outcome == Outcome::busy || arrival->outcome == Outcome::not_ready;
  if (arrival->outcome != Outcome::mixed) return declined ? Pull::busy : Pull::failed;
  gossip_.adopt(*arrival);
  log(LogLevel::info, "gossip",
      "took over the weights of '" + arrival->peer_name + "' at clock " +
          std::to_string(arrival->progress.clock));
  return Pull::taken;
}

}  // namespace dpwa
