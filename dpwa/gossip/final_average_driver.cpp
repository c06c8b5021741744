// The end of a node: performs on the trainer thread what FinalAverage decides.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "dpwa/base/stop_signal.h"
#include "dpwa/config/config.h"
#include "dpwa/engine/final_average.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/gossip/trainer_side.h"
#include "dpwa/log/log.h"
#include "dpwa/net/client.h"
#include "dpwa/net/local_node.h"
#include "dpwa/snapshot/sketch.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;

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

// Performs each action, and tells FinalAverage the result.
class FinalAverageDriver {
 public:
  FinalAverageDriver(TrainerSide& side, FinalAverage& average) : side_(side), average_(average) {}

  // The report, at the end.
  using Over = std::optional<FinishReport>;
  Over operator()(const FinalAverage::Drain& drain) {
    Client& client = side_.node.client();
    while (client.under_way() && SteadyClock::now() < drain.until)
      client.take(side_.config.gossip.timeout);
    client.take(Duration::zero());
    return {};
  }
  Over operator()(const FinalAverage::Publish&) {
    const bool done = side_.publish_now(true);
    if (done) side_.node.local().state = wire::NodeState::finished;
    if (done) side_.report_unless_finite();
    average_.published(done, SteadyClock::now());
    return {};
  }
  Over operator()(const FinalAverage::Greet&) {
    average_.greeted(side_.greet(), SteadyClock::now());
    return {};
  }
  Over operator()(const FinalAverage::TakeBuffer&) {
    if (!own_) own_ = side_.node.local().store.latest();
    auto buffer = side_.node.local().store.try_begin();
    const bool done = buffer.has_value();
    if (done) buffers_.push_back(std::move(*buffer));
    average_.took_buffer(done, SteadyClock::now());
    return {};
  }
  Over operator()(const FinalAverage::Pull& pull) {
    const Exchange& exchange = pull.last ? take_final : read_final;
    const auto arrival = side_.pull(round_with(pull.peer, exchange, pull.timeout));
    const bool landed = arrival && arrival->outcome == Outcome::mixed;
    const double distance = landed ? std::sqrt(arrival->stats.squared_distance) : 0;
    average_.pulled(landed ? std::optional(arrival->progress) : std::nullopt,
                    arrival && arrival->outcome == Outcome::busy, distance, SteadyClock::now());
    return {};
  }
  Over operator()(const FinalAverage::Confirm& confirm) {
    // Nothing is lost when it fails: the peer does not wait for a node that is gone.
    side_.pull(round_with(confirm.peer, confirm_final, confirm.timeout));
    return {};
  }
  Over operator()(const FinalAverage::Sketch& sketch) {
    average_.sketched(sketch_of(side_.parameters.manifest(), model(sketch.own)));
    return {};
  }
  Over operator()(const FinalAverage::Fold& fold) {
    const Manifest& manifest = side_.parameters.manifest();
    const auto folded = model(fold.own);
    if (fold.count == 1) {
      std::ranges::copy(folded, buffers_[0].bytes().begin());
      return {};
    }
    blend_regions(manifest, {0, manifest.exchange_bytes()}, buffers_[0].bytes(), folded,
                  LandingMode::values, 1.0 / static_cast<double>(fold.count));
    take_larger_counters(manifest, buffers_[0].bytes(), folded);
    return {};
  }
  Over operator()(const FinalAverage::Replace& replace) {
    double distance = std::numeric_limits<double>::quiet_NaN();
    if (replace.measures) {
      distance = std::sqrt(squared_distance(side_.parameters.manifest(), buffers_[1].bytes(),
                                            buffers_[0].bytes(), own_->bytes()));
    }
    side_.parameters.assign(buffers_[0].bytes());
    buffers_.clear();
    own_.reset();
    average_.replaced(distance);
    return {};
  }
  Over operator()(const FinalAverage::Wait& wait) {
    std::this_thread::sleep_for(wait.time);
    return {};
  }
  Over operator()(const FinalAverage::Done& done) { return done.report; }

 private:
  // The own model, else the one that was pulled last.
  std::span<const std::byte> model(bool own) {
    return own ? own_->bytes() : side_.node.client().landing().bytes();
  }

  TrainerSide& side_;
  FinalAverage& average_;
  std::shared_ptr<const Snapshot> own_;
  std::vector<SnapshotStore::Writer> buffers_;  // for the mean, then for the difference to it
};

}  // namespace

FinishReport run_final_average(TrainerSide& side) {
  const Config& config = side.config;
  FinalAverageOptions options;
  static_cast<NodePlace&>(options) = place_of(config);
  options.min_nodes = config.gossip.min_nodes;
  options.averages = config.gossip.final_average;
  const DistancePolicy policy = config.gossip.firewall.distance;
  // Models that never met have no usual distance.
  options.leaves_out = config.gossip.pull_probability > 0 &&
                       (policy == DistancePolicy::clip || policy == DistancePolicy::refuse);
  options.timeout = config.gossip.timeout;
  options.finish_wait = config.gossip.finish_wait;
  options.lineage = side.state.lineage();
  const TimePoint begun = SteadyClock::now();
  std::optional<TimePoint> alone_since = side.state.alone_since();
  if (alone_since) alone_since = begun - (side.now() - *alone_since);
  FinalAverage average(std::move(options), begun, alone_since);
  FinalAverageDriver driver(side, average);
  std::set<std::string> served;  // peers that hold the final snapshot
  std::optional<FinishReport> report;
  while (!report) {
    if (side.broken_off) throw std::runtime_error("the end was broken off");
    if (stop_signal::received() != 0) {
      if (const auto made = average.report()) return *made;
      log(LogLevel::info, "gossip",
          "told to stop before the final average: the model of this node is that of its last step");
      return {};
    }
    served.merge(side.node.local().served.take_final());
    const FinalAverage::Action action = average.next(SteadyClock::now(), served);
    log_lines(average.take_lines());
    report = std::visit(driver, action);
  }
  return *report;
}

}  // namespace dpwa
