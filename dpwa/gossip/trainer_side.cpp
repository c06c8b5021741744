#include "dpwa/gossip/trainer_side.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <variant>

#include "dpwa/base/time.h"
#include "dpwa/engine/final_average.h"
#include "dpwa/engine/start_up.h"
#include "dpwa/gossip/blend_regions.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::vector<PeerAnswer> answers_of(const std::vector<Greeted>& greeted,
                                   const std::vector<Member>& members) {
  std::vector<PeerAnswer> answers(greeted.size());
  for (std::size_t peer = 0; peer < greeted.size(); ++peer) {
    PeerAnswer& answer = answers[peer];
    const wire::Welcome& welcome = greeted[peer].welcome;
    answer.asked = greeted[peer].asked;
    answer.failure = greeted[peer].failure;
    answer.detail = greeted[peer].detail;
    answer.refuses_name = greeted[peer].reject == wire::RejectCode::own_name;
    answer.quarantined = greeted[peer].quarantined;
    answer.joining = welcome.state == wire::NodeState::joining;
    answer.finished = welcome.state == wire::NodeState::finished;
    answer.lineage = welcome.lineage;
    answer.clock = welcome.clock;
    answer.name = welcome.node;
    if (peer >= members.size()) continue;
    answer.name = members[peer].claim.name;
    answer.seed = members[peer].seed;
    answer.vouched_for = members[peer].vouched_for();
    answer.status = members[peer].status();
  }
  return answers;
}

std::vector<PeerAnswer> greet(TrainerSide& side) {
  const auto greeted = side.node.client().greet_all(side.config.gossip.timeout);
  return answers_of(greeted, side.node.local().members->all());
}

// A round outside of the steps, to its end; none: it could not begin, or did not end in time.
std::optional<Arrival> pull_now(Client& client, const PullSpec& spec) {
  return client.begin(spec) ? client.take(spec.timeout * 2) : std::nullopt;
}

std::string text_of(const NodeEntry& place) {
  return place.host + ":" + std::to_string(place.port);
}

// Performs each action on the trainer thread, and tells the machine what came of it.
class StartDriver {
 public:
  StartDriver(TrainerSide& side, StartUp& start) : side_(side), start_(start) {}

  // Whether the node may begin.
  bool operator()(const StartUp::Visit&) {
    std::vector<PeerAddress> addresses;
    for (const NodeEntry& node : side_.config.join)
      addresses.push_back({"", node.addresses, node.port});
    const auto visited = side_.node.client().visit_all(
        addresses, true, std::max<Duration>(side_.config.gossip.timeout, std::chrono::seconds(1)));
    for (const Greeted& seed : visited)
      if (!seed.failure) side_.node.local().members->keep(seed.welcome.node);
    start_.visited(answers_of(visited, {}), SteadyClock::now());
    return false;
  }
  bool operator()(const StartUp::Greet&) {
    const auto answers = greet(side_);
    for (const PeerAnswer& answer : answers) {
      if (!answer.failure && answer.seed && answer.lineage != 0)
        side_.state.lineages().hear(answer.name, {answer.lineage, answer.clock}, true);
    }
    start_.greeted(answers, SteadyClock::now());
    return false;
  }
  bool operator()(const StartUp::Publish& publish) {
    side_.state.replace(publish.clock, publish.lineage);
    start_.published(side_.publish_now(false));
    return false;
  }
  bool operator()(const StartUp::Pull& pull) {
    const PullSpec spec = full_pull(pull.peer, pull.timeout);
    const auto arrival = pull_now(side_.node.client(), spec);
    const Outcome outcome = arrival ? arrival->outcome : Outcome::timed_out;
    const Progress progress = arrival ? arrival->progress : Progress{};
    TakeOver result = TakeOver::failed;
    if (outcome == Outcome::busy || outcome == Outcome::not_ready) result = TakeOver::busy;
    if (outcome == Outcome::mixed) {
      result = TakeOver::taken;
      side_.parameters.assign(side_.node.client().landing().bytes());
      side_.state.replace(progress.clock, progress.lineage);
      log(LogLevel::info, "gossip",
          "took over the weights of '" + arrival->peer_name + "' at clock " +
              std::to_string(progress.clock));
    }
    start_.pulled(result, progress.clock, progress.lineage, SteadyClock::now());
    return false;
  }
  bool operator()(const StartUp::Measure& measure) {
    PullSpec spec;
    spec.exchange = compare_only;
    spec.peer = measure.peer;
    if (side_.blocks.size() > 1) {
      spec.block = measure.block;
      spec.range = side_.blocks[measure.block];
    }
    spec.timeout = side_.config.gossip.timeout;
    const auto arrival = pull_now(side_.node.client(), spec);
    const bool compares = arrival && arrival->outcome == Outcome::mixed &&
                          arrival->progress.lineage == side_.state.lineage();
    start_.measured(compares ? std::optional(arrival->stats.squared_distance) : std::nullopt);
    return false;
  }
  bool operator()(const StartUp::Wait& wait) {
    std::this_thread::sleep_for(wait.time);
    return false;
  }
  bool operator()(const StartUp::Begin&) { return true; }
  bool operator()(const StartUp::Fail& fail) { throw std::runtime_error(fail.line); }

 private:
  TrainerSide& side_;
  StartUp& start_;
};

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

// The same for the end of a node.
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
    average_.published(done, SteadyClock::now());
    return {};
  }
  Over operator()(const FinalAverage::Greet&) {
    average_.greeted(greet(side_), SteadyClock::now());
    return {};
  }
  Over operator()(const FinalAverage::TakeBuffer&) {
    if (!own_) own_ = side_.node.local().store.latest();
    auto buffer = side_.node.local().store.begin();
    const bool done = buffer.has_value();
    if (done) buffers_.push_back(std::move(*buffer));
    average_.took_buffer(done, SteadyClock::now());
    return {};
  }
  Over operator()(const FinalAverage::Pull& pull) {
    PullSpec spec = full_pull(pull.peer, pull.timeout);
    spec.exchange = fold_into_average;
    const auto arrival = pull_now(side_.node.client(), spec);
    const bool landed = arrival && arrival->outcome == Outcome::mixed;
    average_.pulled(landed ? std::optional(arrival->progress) : std::nullopt,
                    arrival && arrival->outcome == Outcome::busy, SteadyClock::now());
    return {};
  }
  Over operator()(const FinalAverage::Fold& fold) {
    const Manifest& manifest = side_.parameters.manifest();
    const auto model = fold.own ? own_->bytes() : side_.node.client().landing().bytes();
    if (fold.count == 1) {
      std::ranges::copy(model, buffers_[0].bytes().begin());
      return {};
    }
    blend_regions(manifest, {0, manifest.exchange_bytes()}, buffers_[0].bytes(), model,
                  LandingMode::values, 1.0 / static_cast<double>(fold.count));
    take_larger_counters(manifest, buffers_[0].bytes(), model);
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
  TrainerSide& side_;
  FinalAverage& average_;
  std::shared_ptr<const Snapshot> own_;
  std::vector<SnapshotStore::Writer> buffers_;  // for the mean, then for the difference to it
};

}  // namespace

Progress TrainerSide::progress() const {
  Progress progress = state.progress();
  progress.time_us = static_cast<std::int64_t>(wall_clock_us());
  return progress;
}

bool TrainerSide::publish_now(bool final) {
  Progress now = progress();
  now.final = final;
  return passes.publish_now(now, SteadyClock::now() + config.gossip.timeout * 2);
}

void log_lines(const std::vector<TrainerLine>& lines) {
  for (const TrainerLine& line : lines)
    log(line.warning ? LogLevel::warn : LogLevel::info, "gossip", line.text);
}

void run_start_up(TrainerSide& side, bool resumed, std::uint64_t new_lineage, TimePoint begun) {
  const Config& config = side.config;
  StartUpOptions options;
  options.name = config.self;
  options.position = config.self_index();
  options.file_peers = Node::file_indices(config).size();
  options.joins = config.is_joiner();
  for (const NodeEntry& node : config.join)
    options.join_by += (options.join_by.empty() ? "" : ", ") + text_of(node);
  static_cast<StartOptions&>(options.rule) = config.gossip;
  options.rule.limit = 2 * config.gossip.start_wait + 4 * config.gossip.timeout;
  options.rule.may_bring = !options.joins;  // one that joins has come for the weights of others
  options.timeout = config.gossip.timeout;
  options.blocks = static_cast<unsigned>(side.blocks.size());
  options.firewall = config.gossip.firewall;
  options.new_lineage = new_lineage;
  options.weights = {side.state.clock(), side.state.lineage(), resumed};
  StartUp start(std::move(options), begun);
  StartDriver driver(side, start);
  bool begins = false;
  while (!begins) {
    const StartUp::Action action = start.next(SteadyClock::now(), side.random);
    log_lines(start.take_lines());
    begins = std::visit(driver, action);
  }
  side.node.local().state = wire::NodeState::ready;
  log(LogLevel::info, "gossip", "ready at clock " + std::to_string(side.state.clock()));
}

FinishReport run_final_average(TrainerSide& side,
                               const std::function<std::set<std::string>()>& served_final) {
  const Config& config = side.config;
  FinalAverageOptions options;
  options.name = config.self;
  options.position = config.self_index();
  options.file_peers = Node::file_indices(config).size();
  options.joins = config.is_joiner();
  options.min_nodes = config.gossip.min_nodes;
  options.averages = config.gossip.final_average;
  options.timeout = config.gossip.timeout;
  options.finish_wait = config.gossip.finish_wait;
  options.lineage = side.state.lineage();
  const TimePoint begun = SteadyClock::now();
  std::optional<TimePoint> alone_since = side.state.alone_since();
  if (alone_since) alone_since = begun - (side.now() - *alone_since);
  FinalAverage average(std::move(options), begun, alone_since);
  FinalAverageDriver driver(side, average);
  std::optional<FinishReport> report;
  while (!report) {
    const FinalAverage::Action action = average.next(SteadyClock::now(), served_final());
    log_lines(average.take_lines());
    report = std::visit(driver, action);
  }
  return *report;
}

}  // namespace dpwa
