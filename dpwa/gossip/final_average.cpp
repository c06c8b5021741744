#include "dpwa/gossip/final_average.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "dpwa/gossip/blend_regions.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto pause = std::chrono::milliseconds(25);
// Joiners that say they have finished, and then give nothing in time: after so many, no more of
// those that joined are asked. Whoever may join may do so under many names.
constexpr int most_silent_joiners = 3;
// A peer that refused connections for so long has left.
constexpr auto gone_after = std::chrono::milliseconds(1500);

double squared_distance(const Manifest& manifest, std::span<std::byte> scratch,
                        std::span<const std::byte> a, std::span<const std::byte> b) {
  double sum = 0;
  for (const Region& region : manifest.regions()) {
    if (region.rule != BlendRule::interpolate) continue;
    const auto of = [&region](auto span) { return span.subspan(region.offset, region.bytes); };
    sum += kernels::land_difference(region.dtype, of(scratch), of(a), of(b)).squared_distance;
  }
  return sum;
}

}  // namespace

FinalAverage::FinalAverage(Gossip& gossip)
    : gossip_(gossip), file_peers_(Node::file_indices(gossip.config_).size()) {}

FinishReport FinalAverage::run() {
  Client& client = gossip_.node_->client();
  while (client.under_way()) client.take(gossip_.config_.gossip.timeout);
  client.take(Duration::zero());
  if (!gossip_.publish_now(true)) {
    log(LogLevel::warn, "gossip", "no final average: every snapshot buffer is held by a reader");
    return {};
  }
  gossip_.node_->local().state = wire::NodeState::finished;
  if (!gossip_.config_.gossip.final_average) return {};
  const auto others = wait_for_finals();
  if (others.empty()) return {};
  const FinishReport report = average(others);
  linger(others);
  return report;
}

std::vector<FinalAverage::Other> FinalAverage::wait_for_finals() {
  const auto begun = SteadyClock::now();
  const auto deadline = begun + gossip_.config_.gossip.finish_wait;
  std::vector<Other> others;
  while (true) {
    const auto greeted = gossip_.node_->client().greet_all(gossip_.config_.gossip.timeout);
    const auto now = SteadyClock::now();
    const bool waiting = update(others, greeted, now);
    if (!waiting || now >= deadline) return others;
    std::this_thread::sleep_for(pause);
  }
}

bool FinalAverage::update(std::vector<Other>& others, const std::vector<Greeted>& greeted,
                          TimePoint now) {
  const auto members = gossip_.node_->local().members->all();
  bool waiting = false;
  for (std::size_t peer = 0; peer < greeted.size() && peer < members.size(); ++peer) {
    const Greeted& greeting = greeted[peer];
    const std::string& name = members[peer].claim.name;
    if (peer >= others.size()) others.push_back({static_cast<PeerId>(peer), "", false, false, now});
    Other& other = others[peer];
    if (!greeting.asked) continue;
    if (other.name != name)
      other = {static_cast<PeerId>(peer), name, peer < file_peers_, false, now};
    if (greeting.failure != PeerFailure::unreachable) other.seen = now;
    const MemberStatus status = members[peer].status();
    // One of the file may be starting again; one that joined and is gone is out.
    const bool out = name.empty() || status == MemberStatus::left ||
                     (!other.of_file && status == MemberStatus::dead);
    const bool gone = now - other.seen >= gone_after || (out && greeting.failure) ||
                      greeting.failure == PeerFailure::rejected;
    other.final = !greeting.failure && greeting.welcome.state == wire::NodeState::finished;
    waiting = waiting || (!other.final && !gone && members[peer].vouched_for());
  }
  return waiting;
}

// Those that have finished, and where among them this node belongs.
std::vector<const FinalAverage::Other*> FinalAverage::in_order(const std::vector<Other>& others,
                                                               std::size_t& self) const {
  const Config& config = gossip_.config_;
  std::vector<const Other*> order;
  bool by_name = config.is_joiner();
  self = 0;
  for (const Other& other : others) {
    if (!other.final) continue;
    by_name = by_name || !other.of_file;
    order.push_back(&other);
    if (other.peer < config.self_index()) ++self;
  }
  if (!by_name) return order;
  std::ranges::sort(order, {}, &Other::name);
  self = static_cast<std::size_t>(std::ranges::lower_bound(order, config.self, {}, &Other::name) -
                                  order.begin());
  return order;
}

FinishReport FinalAverage::average(const std::vector<Other>& others) {
  const Config& config = gossip_.config_;
  const Manifest& manifest = gossip_.parameters_.manifest();
  SnapshotStore& store = gossip_.node_->local().store;
  Client& client = gossip_.node_->client();
  const auto own = store.latest();
  auto mean = store.begin();
  if (!mean) return {};

  std::size_t count = 0;
  const auto fold = [&](std::span<const std::byte> model) {
    if (count++ == 0) {
      std::ranges::copy(model, mean->bytes().begin());
    } else {
      blend_regions(manifest, {0, manifest.exchange_bytes()}, mean->bytes(), model,
                    LandingMode::values, 1.0 / static_cast<double>(count));
    }
  };
  std::size_t self = 0;
  const auto order = in_order(others, self);
  int silent_joiners = 0;
  for (std::size_t at = 0; at <= order.size(); ++at) {
    if (at == self) fold(own->bytes());
    if (at == order.size()) break;
    if (!order[at]->of_file && silent_joiners >= most_silent_joiners) continue;
    PullSpec spec =
        full_pull(order[at]->peer, std::max(config.gossip.timeout, config.gossip.finish_wait / 2));
    spec.for_final_average = true;
    std::optional<Arrival> arrival;
    const auto asked_until = SteadyClock::now() + spec.timeout;
    while (client.begin(spec)) {
      arrival = client.take(spec.timeout * 2);
      const bool busy = arrival && arrival->outcome == Outcome::busy;  // others have as much to ask
      if (!busy || SteadyClock::now() >= asked_until) break;
      std::this_thread::sleep_for(pause);
    }
    const bool usable = arrival && arrival->outcome == Outcome::mixed && arrival->progress.final &&
                        arrival->progress.lineage == gossip_.lineage_;
    if (usable) fold(client.landing().bytes());
    if (!usable && !order[at]->of_file) ++silent_joiners;
  }

  FinishReport report;
  report.participants = count;
  if (auto scratch = store.begin()) {
    report.distance_to_average =
        std::sqrt(squared_distance(manifest, scratch->bytes(), mean->bytes(), own->bytes()));
  }
  gossip_.parameters_.assign(mean->bytes());
  report.averaged = count > 1;
  const auto known =
      std::ranges::count_if(others, [](const Other& other) { return !other.name.empty(); });
  log(LogLevel::info, "gossip",
      "final average over " + std::to_string(count) + " of " + std::to_string(known + 1) +
          " nodes");
  return report;
}

void FinalAverage::linger(const std::vector<Other>& others) {
  const auto deadline = SteadyClock::now() + gossip_.config_.gossip.finish_wait;
  while (SteadyClock::now() < deadline) {
    bool wanted = false;
    {
      const std::lock_guard lock(gossip_.served_mutex_);
      for (const Other& other : others)
        wanted = wanted || (other.final && !gossip_.served_final_.contains(other.name));
    }
    if (!wanted) return;
    const auto greeted = gossip_.node_->client().greet_all(gossip_.config_.gossip.timeout);
    const bool alone = std::ranges::none_of(
        greeted, [](const Greeted& peer) { return peer.asked && !peer.failure; });
    if (alone) return;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace dpwa
