#include "dpwa/gossip/gossip.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "dpwa/config/open_log.h"
#include "dpwa/config/reload.h"
#include "dpwa/core/clock.h"
#include "dpwa/core/lineage.h"
#include "dpwa/gossip/final_average.h"
#include "dpwa/gossip/start_up.h"
#include "dpwa/log/log.h"
#include "dpwa/wall_clock.h"
#include "interpolation/divergence_threshold.h"
#include "interpolation/registry.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto settle_poll = std::chrono::microseconds(50);  // of an accelerator, under a budget

GuardedInterpolation make_interpolation(const InterpolationConfig& config) {
  const auto value = config.parameters.find("value");
  const double fallback = value != config.parameters.end() ? value->second : 0.5;
  auto policy = interpolation_registry().make(config.method, config.parameters);
  return GuardedInterpolation(
      with_divergence_threshold(std::move(policy), config.divergence_threshold), fallback);
}

LandingMode landing_mode(BlendMode blend) {
  return blend == BlendMode::delta ? LandingMode::difference : LandingMode::values;
}

struct LogLine {
  LogLevel level;
  std::string text;
};

std::vector<LogLine> lines_of(const ReloadPlan& plan) {
  std::vector<LogLine> lines;
  for (const auto& change : plan.applied)
    lines.push_back({LogLevel::info, "reloaded: " + to_text(change)});
  for (const auto& change : plan.kept)
    lines.push_back({LogLevel::warn, "needs a restart, not taken over: " + to_text(change)});
  if (lines.empty())
    lines.push_back({LogLevel::info, "reloaded: the cluster file has not changed"});
  return lines;
}

}  // namespace

Gossip::Gossip(const Config& config, Parameters& parameters)
    : config_(config),
      listed_(config.nodes),
      parameters_(parameters),
      interpolation_(make_interpolation(config.interpolation)),
      blocks_(layer_blocks(parameters.manifest(), config.gossip.blocks)),
      random_(derive_seed(wall_clock_us(), {config.self_index()})),
      next_block_(static_cast<unsigned>(random_.next() % blocks_.size())),
      incarnation_(wall_clock_us()) {}

Gossip::~Gossip() {
  leave();
}

void Gossip::restore(const ResumeState& state) {
  clock_ = state.clock;
  lineage_ = state.lineage;
  incarnation_ = std::max(incarnation_, state.incarnation + 1);
  resumed_ = true;
}

ResumeState Gossip::resume_state() const {
  return {clock_, lineage_, incarnation_};
}

void Gossip::start() {
  Node::Options options;
  options.incarnation = incarnation_;
  options.seed = random_.next();
  options.allocate = [this](std::size_t bytes) { return parameters_.allocate(bytes); };
  options.on_served = [this](const std::string& peer, const Progress& served,
                             bool for_final_average) {
    // One that still trains, or only joins, will want the final snapshot again for its average.
    if (!served.final || !for_final_average) return;
    const std::lock_guard lock(served_mutex_);
    served_final_.insert(peer);
  };
  node_ = std::make_unique<Node>(config_, parameters_.manifest(), std::move(options));
  publisher_.emplace(parameters_, node_->local().store);
  node_->start();
  StartUp(*this).run();
}

Progress Gossip::progress() const {
  Progress progress;
  progress.lineage = lineage_;
  progress.clock = clock_;
  progress.time_us = static_cast<std::int64_t>(wall_clock_us());
  return progress;
}

void Gossip::publish(const std::function<double()>& loss) {
  complete_publish();
  publisher_->open();
  send(loss);
}

void Gossip::send(const std::function<double()>& loss) {
  clock_ = clock_after_publish(clock_);
  publisher_->begin(loss, progress());
  complete_publish();
}

void Gossip::complete_publish() {
  publisher_->complete();
  if (parameters_.settled() && std::exchange(pull_wanted_, false)) begin_pull();
}

bool Gossip::publish_now(bool final) {
  Progress now = progress();
  now.final = final;
  return publisher_->publish_now(now, SteadyClock::now() + config_.gossip.timeout * 2);
}

void Gossip::begin_pull() {
  if (publisher_->under_way() || !parameters_.settled()) {
    pull_wanted_ = true;
    return;
  }
  PullSpec spec;
  spec.mode = landing_mode(config_.gossip.blend);
  spec.timeout = config_.gossip.timeout;
  // A pull compares the latest snapshot of the peer with our own latest when it is answered. Asked
  // right after a publish, ours would always be fresh and the peer's on average half a step old:
  // every delta would hold the mean back, 0.81 of the nominal learning rate at p = 1, f = 1/2.
  // Asked at a random moment of the step, both have the same age on average, whatever the nodes'
  // pace.
  if (config_.gossip.step_budget == Duration::zero()) {
    const auto step = static_cast<double>(step_interval_.get().count());
    spec.delay = Duration(static_cast<Duration::rep>(random_.uniform(0, 1) * step));
  }
  if (adopt_from_) {
    spec = full_pull(*std::exchange(adopt_from_, std::nullopt), config_.gossip.timeout);
  } else if (blocks_.size() > 1) {
    spec.block = next_block_;
    spec.range = blocks_[next_block_];
  }
  const bool begun = node_->client().begin(spec);
  if (begun && spec.range) next_block_ = (next_block_ + 1) % blocks_.size();
}

void Gossip::update_send(const std::function<double()>& loss) {
  if (const auto why = node_->client().evicted()) {
    throw std::runtime_error("node '" + config_.self + "' ends, as most nodes refuse it: " + *why);
  }
  auto arrival = node_->client().take(Duration::zero());
  if (arrival) {
    // Not complete_publish(): a pull begun now would land on what has arrived.
    publisher_->complete();
    publisher_->open();  // before the blend, which then fills it in the same pass
    absorb(std::move(*arrival));
  } else {
    complete_publish();
    publisher_->open();
  }
  step_interval_.observe(SteadyClock::now());
  send(loss);
  if (random_.bernoulli(config_.gossip.pull_probability)) begin_pull();
}

StepReport Gossip::update_wait() {
  complete_publish();
  if (!blended_) {
    if (auto arrival = await_arrival()) absorb(std::move(*arrival));
  }
  if (report_.outcome == Outcome::skipped && (pull_wanted_ || node_->client().under_way())) {
    report_.outcome = Outcome::pending;
  }
  report_.clock = clock_;
  report_.blocks = static_cast<unsigned>(blocks_.size());
  report_.pulls_ok = pulls_ok_;
  report_.pulls_failed = pulls_failed_;
  blended_ = false;
  return std::exchange(report_, {});
}

std::optional<Arrival> Gossip::await_arrival() {
  Client& client = node_->client();
  const auto from = SteadyClock::now();
  const auto until = from + config_.gossip.step_budget;
  // An accelerator must have done with the publish before the pull begins.
  while (pull_wanted_ && !client.under_way() && SteadyClock::now() < until) {
    std::this_thread::sleep_for(settle_poll);
    complete_publish();
  }
  auto arrival = client.take(std::max(Duration::zero(), Duration(until - SteadyClock::now())));
  if (config_.gossip.step_budget > Duration::zero()) report_.waited = SteadyClock::now() - from;
  return arrival;
}

void Gossip::absorb(Arrival arrival) {
  report_.outcome = arrival.outcome;
  report_.peer = std::move(arrival.peer_name);
  report_.bytes += arrival.bytes;
  report_.refused += arrival.refused;
  if (arrival.outcome != Outcome::mixed) {
    if (arrival.outcome != Outcome::skipped) ++pulls_failed_;
    return;
  }
  report_.staleness = clock_ - arrival.progress.clock;
  if (arrival.full) {
    adopt(arrival);
    report_.factor = 1;
    blended_ = true;
  } else if (arrival.progress.lineage != lineage_) {
    if (adopts(progress(), arrival.progress)) adopt_from_ = arrival.peer;
    report_.outcome = Outcome::rejected;
    ++pulls_failed_;
    report_other_lineage();
    return;
  } else {
    blend(arrival);
  }
  report_.same_host = arrival.same_host;
  ++pulls_ok_;
}

void Gossip::report_other_lineage() {
  const std::string consequence = adopt_from_ ? "taking over its weights" : "not blended";
  const auto held_back = log_limiter_.pass(report_.peer + ' ' + consequence, SteadyClock::now());
  if (!held_back) return;
  log(LogLevel::warn, "gossip",
      "'" + report_.peer + "' descends from other initial weights: " + consequence +
          since_words(*held_back));
}

void Gossip::blend(const Arrival& arrival) {
  const auto result = interpolation_.factor(
      {clock_, arrival.progress.clock, publisher_->loss(), arrival.progress.loss});
  if (result.fallback) ++factor_fallbacks_;
  // Clipping the difference to the bound is the same as cutting the factor, in either blend.
  const double factor = result.factor * arrival.factor_scale;
  publisher_->blend(node_->client().landing(), factor);
  const double peer_clock = arrival.progress.clock;
  const double moved = factor * share_of(arrival.block);
  clock_ = config_.gossip.blend == BlendMode::delta
               ? clock_after_delta(clock_, peer_clock, arrival.own.clock, moved)
               : clock_after_lerp(clock_, peer_clock, moved);
  report_.factor = factor;
  report_.clipped = arrival.factor_scale < 1;
  report_.block = arrival.block;
  report_.distance = std::sqrt(arrival.stats.squared_distance);
  blended_ = true;
}

// Of what the nodes exchange: a block moves the clock by as much as it moves the model.
double Gossip::share_of(unsigned block) const {
  if (blocks_.size() == 1) return 1;
  return static_cast<double>(blocks_[block].length) /
         static_cast<double>(parameters_.manifest().exchange_bytes());
}

void Gossip::adopt(const Arrival& arrival) {
  parameters_.assign(node_->client().landing().bytes());
  clock_ = arrival.progress.clock;
  lineage_ = arrival.progress.lineage;
}

void Gossip::reload(const Config& fresh) {
  Config running = config_;
  running.nodes = listed_;
  ReloadPlan plan = plan_reload(running, fresh);
  plan.config.nodes = config_.nodes;
  std::vector<NodeEntry> listed = fresh.nodes;
  const std::vector<LogLine> lines = lines_of(plan);
  NewLog opened = open_log(plan.config);  // its file anew
  if (node_) node_->take_up(plan);
  // Nothing fails from here on.
  opened.use();
  listed_ = std::move(listed);
  config_ = std::move(plan.config);
  for (const LogLine& line : lines) log(line.level, "config", line.text);
  reload_security();
}

void Gossip::reload_security() {
  if (config_.security.mode == "insecure" || config_.security.mode.empty() || !node_) return;
  try {
    if (const auto why = node_->reload_security()) {
      log(LogLevel::error, "config", "the keys stay as they were: " + *why);
    } else {
      log(LogLevel::info, "config", "reloaded: the files of the security section");
    }
  } catch (const std::bad_alloc&) {
    log(LogLevel::error, "config", "the keys stay as they were: no memory");
  }
}

FinishReport Gossip::finish() {
  if (node_ == nullptr) return {};
  const FinishReport report = FinalAverage(*this).run();
  leave();
  return report;
}

void Gossip::leave() {
  if (node_) node_->stop();
}

}  // namespace dpwa
