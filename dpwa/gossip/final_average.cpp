#include "dpwa/gossip/final_average.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
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
    : gossip_(gossip),
      begun_(SteadyClock::now()),
      file_peers_(Node::file_indices(gossip.config_).size()) {}

FinishReport FinalAverage::run() {
  const GossipConfig& config = gossip_.config_.gossip;
  Client& client = gossip_.node_->client();
  const auto until = begun_ + std::max(config.finish_wait, 4 * config.timeout);
  while (client.under_way() && SteadyClock::now() < until) client.take(config.timeout);
  client.take(Duration::zero());
  if (const auto since = gossip_.alone_.since()) {
    const auto alone = std::chrono::round<std::chrono::seconds>(SteadyClock::now() - *since);
    log(LogLevel::warn, "gossip",
        "ends alone: no peer has answered for " + std::to_string(alone.count()) + " s");
  }
  bool published = gossip_.publish_now(true);
  while (!published && SteadyClock::now() < until) published = gossip_.publish_now(true);
  if (published) gossip_.node_->local().state = wire::NodeState::finished;
  if (!config.final_average) return {};
  if (!published)
    return report_on({}, file_peers_ + 1, ": every snapshot buffer is held by a reader");
  auto others = wait_for_finals();
  if (others.empty()) return config.min_nodes > 1 ? report_on({}, 1, "") : FinishReport{};
  const FinishReport report = average(others);
  linger(others);
  return report;
}

// Says how many nodes the average is over, and whether that is enough.
FinishReport FinalAverage::report_on(FinishReport report, std::size_t known,
                                     const std::string& why) const {
  const std::size_t least = gossip_.config_.gossip.min_nodes;
  report.enough = report.participants >= least;
  std::string text = "final average over " + std::to_string(report.participants) + " of " +
                     std::to_string(known) + " nodes" + why;
  if (!report.enough) text += "; gossip.min_nodes asks for " + std::to_string(least);
  const bool all = report.participants >= known && report.enough;
  log(all ? LogLevel::info : LogLevel::warn, "gossip", text);
  return report;
}

std::vector<FinalAverage::Other> FinalAverage::wait_for_finals() {
  const auto deadline = begun_ + gossip_.config_.gossip.finish_wait;
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
    if (peer >= others.size())
      others.push_back({static_cast<PeerId>(peer), "", false, false, false, now});
    Other& other = others[peer];
    if (!greeting.asked) continue;
    if (other.name != name)
      other = {static_cast<PeerId>(peer), name, peer < file_peers_, false, false, now};
    if (greeting.failure != PeerFailure::unreachable) other.seen = now;
    other.answered = other.answered || !greeting.failure;
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
  const GossipConfig& config = gossip_.config_.gossip;
  const Manifest& manifest = gossip_.parameters_.manifest();
  const auto until = SteadyClock::now() + std::max(config.finish_wait, config.timeout);
  // Names that others only tell of may be invented.
  const auto is_node = [](const Other& other) {
    return !other.name.empty() && (other.of_file || other.answered);
  };
  const auto known = static_cast<std::size_t>(1 + std::ranges::count_if(others, is_node));
  const auto own = gossip_.node_->local().store.latest();
  auto mean = free_buffer(until);
  if (!mean) return report_on({}, known, ": every snapshot buffer is held by a reader");

  std::size_t count = 0;
  const auto fold = [&](std::span<const std::byte> model) {
    if (count++ == 0) {
      std::ranges::copy(model, mean->bytes().begin());
    } else {
      blend_regions(manifest, {0, manifest.exchange_bytes()}, mean->bytes(), model,
                    LandingMode::values, 1.0 / static_cast<double>(count));
      take_larger_counters(manifest, mean->bytes(), model);
    }
  };
  std::size_t self = 0;
  const auto order = in_order(others, self);
  int silent_joiners = 0;
  for (std::size_t at = 0; at <= order.size(); ++at) {
    if (at == self) fold(own->bytes());
    if (at == order.size()) break;
    if (!order[at]->of_file && silent_joiners >= most_silent_joiners) continue;
    const bool usable = pull(*order[at], until);
    if (usable) fold(gossip_.node_->client().landing().bytes());
    if (!usable && !order[at]->of_file) ++silent_joiners;
  }

  FinishReport report;
  report.participants = count;
  report.distance_to_average = std::numeric_limits<double>::quiet_NaN();
  if (auto scratch = free_buffer(until)) {
    report.distance_to_average =
        std::sqrt(squared_distance(manifest, scratch->bytes(), mean->bytes(), own->bytes()));
  }
  gossip_.parameters_.assign(mean->bytes());
  report.averaged = count > 1;
  return report_on(report, known, "");
}

// Half of what is left at most, so that those that hang leave time for others.
bool FinalAverage::pull(const Other& other, TimePoint until) {
  const Duration least = gossip_.config_.gossip.timeout;
  const Duration left = until - SteadyClock::now();
  if (left <= Duration::zero()) return false;
  Client& client = gossip_.node_->client();
  PullSpec spec = full_pull(other.peer, std::min(left, std::max(least, left / 2)));
  spec.exchange = fold_into_average;
  std::optional<Arrival> arrival;
  const auto asked_until = SteadyClock::now() + spec.timeout;
  while (client.begin(spec)) {
    arrival = client.take(spec.timeout * 2);
    const bool busy = arrival && arrival->outcome == Outcome::busy;  // others have as much to ask
    if (!busy || SteadyClock::now() >= asked_until) break;
    std::this_thread::sleep_for(pause);
  }
  return arrival && arrival->outcome == Outcome::mixed && arrival->progress.final &&
         arrival->progress.lineage == gossip_.lineage_;
}

// Readers hold buffers until the deadline that they stated.
std::optional<SnapshotStore::Writer> FinalAverage::free_buffer(TimePoint until) {
  SnapshotStore& store = gossip_.node_->local().store;
  auto buffer = store.begin();
  while (!buffer && SteadyClock::now() < until) {
    std::this_thread::sleep_for(pause);
    buffer = store.begin();
  }
  return buffer;
}

void FinalAverage::linger(std::vector<Other>& others) {
  const auto deadline = begun_ + 3 * gossip_.config_.gossip.finish_wait;
  for (auto now = SteadyClock::now(); now < deadline; now = SteadyClock::now()) {
    const std::set<std::string> served = gossip_.served_final();
    const auto wants = [&](const Other& other) {
      return other.final && now - other.seen < gone_after && !served.contains(other.name);
    };
    if (std::ranges::none_of(others, wants)) return;
    const auto greeted = gossip_.node_->client().greet_all(gossip_.config_.gossip.timeout);
    bool alone = true;
    for (std::size_t peer = 0; peer < greeted.size(); ++peer) {
      if (!greeted[peer].asked) continue;
      alone = alone && greeted[peer].failure;
      const bool there = greeted[peer].failure != PeerFailure::unreachable;
      if (there && peer < others.size()) others[peer].seen = SteadyClock::now();
    }
    if (alone) return;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace dpwa
