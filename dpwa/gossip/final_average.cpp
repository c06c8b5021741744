#include "dpwa/gossip/final_average.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "dpwa/gossip/blend_regions.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto pause = std::chrono::milliseconds(25);
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
    : gossip_(gossip), indices_(Node::file_indices(gossip.config_)) {}

FinishReport FinalAverage::run() {
  Client& client = gossip_.node_->client();
  while (client.under_way()) client.take(gossip_.config_.gossip.timeout);
  client.take(Duration::zero());
  if (!gossip_.publish_now(true)) {
    log(LogLevel::warn, "gossip", "no final average: every snapshot buffer is held by a reader");
    return {};
  }
  gossip_.node_->local().state = wire::NodeState::finished;
  if (!gossip_.config_.gossip.final_average || indices_.empty()) return {};
  const auto finals = wait_for_finals();
  const FinishReport report = average(finals);
  linger(finals);
  return report;
}

std::vector<bool> FinalAverage::wait_for_finals() {
  const auto begun = SteadyClock::now();
  const auto deadline = begun + gossip_.config_.gossip.finish_wait;
  std::vector<bool> finals(gossip_.config_.nodes.size(), false);
  std::vector<TimePoint> seen(indices_.size(), begun);
  while (true) {
    const auto greeted = gossip_.node_->client().greet_all(gossip_.config_.gossip.timeout);
    const auto now = SteadyClock::now();
    bool waiting = false;
    for (std::size_t peer = 0; peer < greeted.size(); ++peer) {
      const Greeted& greeting = greeted[peer];
      if (greeting.failure != PeerFailure::unreachable) seen[peer] = now;
      const bool final = !greeting.failure && greeting.welcome.state == wire::NodeState::finished;
      const bool gone = now - seen[peer] >= gone_after || greeting.failure == PeerFailure::rejected;
      finals[indices_[peer]] = final;
      waiting = waiting || (!final && !gone);
    }
    if (!waiting || now >= deadline) return finals;
    std::this_thread::sleep_for(pause);
  }
}

FinishReport FinalAverage::average(std::vector<bool> finals) {
  const Config& config = gossip_.config_;
  const Manifest& manifest = gossip_.parameters_.manifest();
  SnapshotStore& store = gossip_.node_->local().store;
  Client& client = gossip_.node_->client();
  const auto own = store.latest();
  auto mean = store.begin();
  if (!mean) return {};
  finals[config.self_index()] = true;

  std::size_t count = 0;
  const auto fold = [&](std::span<const std::byte> model) {
    if (count++ == 0) {
      std::memcpy(mean->bytes().data(), model.data(), model.size());
    } else {
      blend_regions(manifest, {0, manifest.exchange_bytes()}, mean->bytes(), model,
                    LandingMode::values, 1.0 / static_cast<double>(count));
    }
  };
  for (std::size_t index = 0; index < config.nodes.size(); ++index) {
    if (!finals[index]) continue;
    if (index == config.self_index()) {
      fold(own->bytes());
      continue;
    }
    const auto peer = static_cast<PeerId>(std::ranges::find(indices_, index) - indices_.begin());
    PullSpec spec = full_pull(peer, std::max(config.gossip.timeout, config.gossip.finish_wait / 2));
    spec.for_final_average = true;
    if (!client.begin(spec)) continue;
    const auto arrival = client.take(spec.timeout * 2);
    const bool usable = arrival && arrival->outcome == Outcome::mixed && arrival->progress.final &&
                        arrival->progress.lineage == gossip_.lineage_;
    if (usable) fold(client.landing().bytes());
  }

  FinishReport report;
  report.participants = count;
  if (auto scratch = store.begin()) {
    report.distance_to_average =
        std::sqrt(squared_distance(manifest, scratch->bytes(), mean->bytes(), own->bytes()));
  }
  gossip_.parameters_.assign(mean->bytes());
  report.averaged = count > 1;
  log(LogLevel::info, "gossip",
      "final average over " + std::to_string(count) + " of " + std::to_string(config.nodes.size()) +
          " nodes");
  return report;
}

void FinalAverage::linger(const std::vector<bool>& finals) {
  const auto deadline = SteadyClock::now() + gossip_.config_.gossip.finish_wait;
  while (SteadyClock::now() < deadline) {
    bool wanted = false;
    {
      const std::lock_guard lock(gossip_.served_mutex_);
      for (const std::size_t index : indices_) {
        wanted = wanted || (finals[index] &&
                            !gossip_.served_final_.contains(gossip_.config_.nodes[index].name));
      }
    }
    if (!wanted) return;
    const auto greeted = gossip_.node_->client().greet_all(gossip_.config_.gossip.timeout);
    const bool alone =
        std::ranges::all_of(greeted, [](const Greeted& peer) { return peer.failure.has_value(); });
    if (alone) return;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace dpwa
