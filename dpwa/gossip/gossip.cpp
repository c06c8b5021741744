#include "dpwa/gossip/gossip.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

#include "dpwa/base/wall_clock.h"
#include "dpwa/gossip/final_average.h"
#include "dpwa/gossip/pull_blocks.h"
#include "dpwa/gossip/start_up.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/clock.h"
#include "dpwa/rules/lineage.h"
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

// One stream for each purpose and node.
constexpr std::uint64_t choices_stream = 1;
constexpr std::uint64_t lineage_stream = 2;

std::uint64_t seed_of(const Config& config) {
  return derive_seed(config.gossip.seed.value_or(wall_clock_us()),
                     {choices_stream, hash_of(config.self)});
}

}  // namespace

Gossip::Gossip(const Config& config, Parameters& parameters, TimeSource now)
    : config_(config),
      listed_(config.nodes),
      parameters_(parameters),
      now_(std::move(now)),
      interpolation_(make_interpolation(config.interpolation)),
      blocks_(pull_blocks(config, parameters.manifest())),
      random_(seed_of(config)),
      next_block_(static_cast<unsigned>(random_.next() % blocks_.size())),
      incarnation_(wall_clock_us()) {}

Gossip::~Gossip() {
  leave();
}

void Gossip::restore(const GossipState& state) {
  clock_ = state.clock;
  lineage_ = state.lineage;
  incarnation_ = std::max(incarnation_, state.incarnation + 1);
  resumed_ = true;
  lineages_.clear();  // heard as another one
}

GossipState Gossip::resume_state() const {
  return {clock_, lineage_, incarnation_};
}

void Gossip::start_after(Duration waited) {
  const auto begun = SteadyClock::now() - waited;
  Node::Options options;
  options.incarnation = incarnation_;
  options.seed = random_.next();
  options.now = now_;
  options.allocate = [this](std::size_t bytes) { return parameters_.allocate(bytes); };
  options.on_served = [this](const std::string& peer, const Progress& served, ServedFor use) {
    if (use == ServedFor::blend) return;
    const MutexLock lock(served_mutex_);
    const LocalNode& local = node_->local();
    const bool trains = local.state != wire::NodeState::joining;
    if (use == ServedFor::taking_over && trains && local.members->is_seed(peer))
      given_.insert_or_assign(peer, Given{now_(), served.lineage});
    // One that still trains, or only joins, will want the final snapshot again for its average.
    if (served.final && use == ServedFor::final_average) served_final_.insert(peer);
  };
  node_ = std::make_unique<Node>(config_, parameters_.manifest(), std::move(options));
  publisher_.emplace(parameters_, node_->local().store);
  node_->start(config_.gossip.start_wait - waited);
  StartUp(*this, begun).run();
}

std::set<std::string> Gossip::served_final() {
  const MutexLock lock(served_mutex_);
  return served_final_;
}

void Gossip::rest() {
  node_->local().dormant = true;
}

void Gossip::set_lineage(std::uint64_t lineage) {
  lineage_ = lineage;
  other_lineage_.reset();
}

void Gossip::resume(double clock) {
  (void)node_->client().take(Duration::zero());
  clock_ = clock;
  publish_now(/*final=*/false);
  node_->local().dormant = false;
}

std::uint64_t Gossip::new_lineage() const {
  return std::max<std::uint64_t>(
      1, derive_seed(incarnation_, {lineage_stream, hash_of(config_.self)}));
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

StepReport Gossip::update_wait(const std::function<double()>& loss) {
  complete_publish();
  const auto pulling = [this] { return pull_wanted_ || node_->client().under_way(); };
  // Before the look for what has arrived: a pull that ends after it is for a later step.
  bool pending = pulling();
  if (!blended_) {
    if (auto arrival = await_arrival()) {
      absorb(std::move(*arrival), loss);
      pending = pulling();
    }
  }
  if (report_.outcome == Outcome::skipped && pending)
    report_.outcome = alone_outcome_.value_or(Outcome::pending);
  report_.clock = clock_;
  report_.blocks = static_cast<unsigned>(blocks_.size());
  report_.pulls_ok = pulls_ok_;
  report_.pulls_failed = pulls_failed_;
  Traffic& traffic = node_->local().traffic;
  traffic.pulls_ok = pulls_ok_;
  traffic.pulls_failed = pulls_failed_;
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

void Gossip::absorb(Arrival arrival, const std::function<double()>& loss) {
  watch_alone(arrival);
  hear(arrival.other_lineages);
  report_.outcome = arrival.outcome;
  report_.peer = std::move(arrival.peer_name);
  report_.bytes += arrival.bytes;
  report_.refused += arrival.refused;
  if (arrival.outcome != Outcome::mixed) {
    if (arrival.outcome != Outcome::skipped) ++pulls_failed_;
    return;
  }
  report_.staleness = clock_ - arrival.progress.clock;
  note_lineage(report_.peer, arrival.progress.lineage, arrival.progress.clock);
  if (arrival.full ? !yields_to(report_.peer, arrival.progress)
                   : arrival.progress.lineage != lineage_) {
    report_.outcome = Outcome::rejected;
    ++pulls_failed_;
    if (arrival.progress.lineage != lineage_) report_other_lineage(report_.peer, "not blended");
    return;
  }
  if (arrival.full) {
    take_over(arrival);
  } else {
    blend(arrival, loss);
  }
  report_.same_host = arrival.same_host;
  ++pulls_ok_;
}

void Gossip::hear(const std::vector<OtherLineage>& others) {
  for (const OtherLineage& other : others)
    note_lineage(other.name, other.progress.lineage, other.progress.clock);
  for (const OtherLineage& other : others) {
    const bool yields = !adopt_from_ && yields_to(other.name, other.progress);
    if (yields) adopt_from_ = other.peer;
    report_other_lineage(other.name, yields ? "taking over its weights" : "not blended");
  }
}

// Bounded: nodes of the file, and where none is known as such, as for one that joins without a
// file, as many as there may be members.
void Gossip::note_lineage(const std::string& name, std::uint64_t lineage, double clock) {
  if (const auto known = lineages_.find(name); known != lineages_.end()) {
    known->second = {lineage, clock};
    return;
  }
  const bool room = lineages_.size() < config_.gossip.membership.max_members;
  if (room || node_->local().members->is_seed(name)) lineages_[name] = {lineage, clock};
}

bool Gossip::yields_to(const std::string& name, const Progress& progress) {
  const auto now = now_();
  if (!other_lineage_) other_lineage_ = now;
  const auto members = node_->local().members->all();
  const bool by_file = std::ranges::any_of(members, &Member::seed);
  std::vector<LineageReport> others;
  bool counts = false;
  for (const Member& member : members) {
    const bool out = member.claim.name.empty() || member.status() != MemberStatus::alive;
    if (out || (by_file && !member.seed)) continue;
    counts = counts || member.claim.name == name;
    const auto known = lineages_.find(member.claim.name);
    others.push_back(known == lineages_.end() ? LineageReport{} : known->second);
  }
  if (!counts || !takeovers_.allows(name, now)) return false;
  const bool heard_enough = now - *other_lineage_ >= config_.gossip.start_wait;
  const Progress own = this->progress();
  if (!yields(own, progress, others, !config_.is_joiner(), heard_enough)) return false;
  const MutexLock lock(served_mutex_);
  const auto given = given_.find(name);
  return given == given_.end() || given->second.lineage != own.lineage ||
         TakeoverLimit::may_cross(own, progress, given->second.at, now);
}

void Gossip::take_over(const Arrival& arrival) {
  adopt(arrival);
  takeovers_.took(report_.peer, now_());
  other_lineage_.reset();
  log(LogLevel::warn, "gossip",
      "took over the weights of '" + report_.peer + "' at clock " + std::to_string(clock_) +
          ": more nodes of the file descend from these, or they have trained for longer");
  report_.factor = 1;
  blended_ = true;
}

// A pull that finds nobody is soon over: while no peer answers, the steps say so and not that one
// is under way.
void Gossip::watch_alone(const Arrival& arrival) {
  const bool failed = arrival.outcome != Outcome::mixed && arrival.outcome != Outcome::skipped;
  alone_outcome_ = arrival.alone && failed ? std::optional(arrival.outcome) : std::nullopt;
  if (const auto time = alone_.observe(arrival.alone, SteadyClock::now())) {
    const auto seconds = std::chrono::round<std::chrono::seconds>(*time).count();
    log(LogLevel::warn, "gossip",
        "training alone: no peer has answered for " + std::to_string(seconds) + " s");
  }
}

void Gossip::report_other_lineage(const std::string& peer, const std::string& consequence) {
  const auto held_back = log_limiter_.pass(peer + ' ' + consequence, SteadyClock::now());
  if (!held_back) return;
  log(LogLevel::warn, "gossip",
      "'" + peer + "' descends from other initial weights: " + consequence +
          since_words(*held_back));
}

void Gossip::blend(const Arrival& arrival, const std::function<double()>& loss) {
  const double own_loss = loss ? loss() : publisher_->loss();
  const auto result =
      interpolation_.factor({clock_, arrival.progress.clock, own_loss, arrival.progress.loss});
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
