#include "dpwa/gossip/gossip.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/base/trace.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/reload.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/gossip/trainer_side.h"
#include "dpwa/log/log.h"
#include "dpwa/net/client.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/server.h"
#include "dpwa/rules/pair_ledger.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto settle_poll = std::chrono::microseconds(50);  // of an accelerator, under a budget

TrainerPace pace_of(const GossipConfig& gossip) {
  return {gossip.pull_probability, gossip.step_budget == Duration::zero(), gossip.start_wait,
          gossip.timeout};
}

TrainerOptions trainer_options(const Config& config, const Manifest& manifest,
                               const std::vector<ByteRange>& blocks) {
  TrainerOptions options{pace_of(config.gossip)};
  options.listing = listing_of(config);
  options.by_delta = config.gossip.blend == BlendMode::delta;
  options.max_members = config.gossip.membership.max_members;
  if (blocks.size() == 1) return options;
  options.block_shares.clear();
  for (const ByteRange& block : blocks) {
    options.block_shares.push_back(static_cast<double>(block.length) /
                                   static_cast<double>(manifest.exchange_bytes()));
  }
  return options;
}

// One stream for each purpose and node.
constexpr std::uint64_t choices_stream = 1;
constexpr std::uint64_t lineage_stream = 2;

std::uint64_t seed_of(const Config& config) {
  return derive_seed(config.gossip.seed.value_or(wall_clock_us()),
                     {choices_stream, hash_of(config.self)});
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

// The other nodes as in the file that was read last; the own entry as at the start of this run.
std::vector<NodeEntry> in_force(std::vector<NodeEntry> listed, const NodeEntry& own) {
  for (NodeEntry& node : listed) {
    if (node.name == own.name) node = own;
  }
  return listed;
}

}  // namespace

Gossip::Gossip(const Config& config, Parameters& parameters, TimeSource now)
    : config_(config),
      listed_(config.nodes),
      parameters_(parameters),
      now_(std::move(now)),
      blocks_(pull_blocks(config, parameters.manifest())),
      random_(seed_of(config)),
      state_(trainer_options(config, parameters.manifest(), blocks_),
             make_interpolation(config.interpolation), random_),
      incarnation_(wall_clock_us()) {}

Gossip::~Gossip() {
  leave();
}

void Gossip::restore(const GossipState& state) {
  state_.restore(state.clock, state.lineage);
  incarnation_ = std::max(incarnation_, state.incarnation + 1);
  resumed_ = true;
}

GossipState Gossip::resume_state() const {
  return {state_.clock(), state_.lineage(), incarnation_};
}

TrainerSide Gossip::side() {
  return {config_, parameters_, blocks_, random_,          state_,
          *node_,  *passes_,    now_,    said_not_finite_, broken_off_};
}

void Gossip::start_after(Duration waited) {
  const auto begun = SteadyClock::now() - waited;
  GossipNode::Options options;
  options.incarnation = incarnation_;
  options.seed = random_.next();
  const auto factor = state_.constant_factor();
  if (config_.gossip.ledger && factor >= PairLedger::least_factor) options.ledger_factor = factor;
  options.block_shares = state_.block_shares();
  options.now = now_;
  options.allocate = [this](std::size_t bytes, bool shared) {
    return parameters_.allocate(bytes, shared);
  };
  node_ = std::make_unique<GossipNode>(config_, parameters_.manifest(), std::move(options));
  passes_.emplace(parameters_, node_->local().store);
  for (auto& handler : handlers_) node_->endpoint().server().add(std::move(handler));
  node_->start(config_.gossip.start_wait - waited);
  TrainerSide side = this->side();
  run_start_up(side, resumed_, new_lineage(), begun);
}

void Gossip::serve_also(std::unique_ptr<RequestHandler> handler) {
  handlers_.push_back(std::move(handler));
}

void Gossip::rest() {
  node_->local().dormant = true;
}

void Gossip::set_lineage(std::uint64_t lineage) {
  state_.replace(state_.clock(), lineage);
  state_.lineages().forget_question();
}

void Gossip::resume(double clock) {
  (void)node_->client().take(Duration::zero());
  fetching_.reset();
  state_.replace(clock, state_.lineage());
  side().publish_now(/*final=*/false);
  node_->local().fresh_until = TimePoint::max();  // the next step may be far
  node_->local().dormant = false;
}

std::uint64_t Gossip::new_lineage() const {
  return std::max<std::uint64_t>(
      1, derive_seed(incarnation_, {lineage_stream, hash_of(config_.self)}));
}

void Gossip::publish(const std::function<double()>& loss) {
  complete_publish();
  passes_->open();
  send(loss);
}

void Gossip::send(const std::function<double()>& loss) {
  Progress progress = state_.publish();
  progress.time_us = static_cast<std::int64_t>(wall_clock_us());
  passes_->begin(loss, progress);
  complete_publish();
}

void Gossip::complete_copy() {
  if (!passes_->complete()) return;
  const auto fresh_for = state_.fresh_for();
  node_->local().fresh_until = fresh_for ? SteadyClock::now() + *fresh_for : TimePoint::max();
}

void Gossip::complete_publish() {
  complete_copy();
  if (pull_wanted_ && may_pull()) begin_pull();
}

// What lands is compared with the snapshot of this step; with an earlier one where the program runs
// ahead of its device, or readers hold all buffers, but not with one from before the last blend,
// which would count twice.
bool Gossip::may_pull() {
  const bool published = pull_wanted_ && passes_->published() > *pull_wanted_;
  const bool comparable = passes_->is_up_to_date() && (!passes_->under_way() || published);
  return !fetching_ && comparable && parameters_.landing_is_free();
}

void Gossip::begin_pull() {
  if (!may_pull()) {
    if (!pull_wanted_) pull_wanted_ = passes_->published();
    return;
  }
  pull_wanted_.reset();
  const RoundSpec round = state_.plan_pull(random_);
  if (node_->client().begin(side().spec_of(round))) state_.began(round);
}

void Gossip::update_send(const std::function<double()>& loss) {
  StepClock& clock = node_->local().steps;
  const StepScope counted(clock, StepClock::Part::publish, SteadyClock::now);
  if (const auto why = node_->client().evicted()) {
    throw std::runtime_error("node '" + config_.self +
                             "' ends because most nodes refuse it: " + *why);
  }
  // A program that calls this twice in a step has blended already: the arrival waits.
  const auto arrival = state_.blended() ? std::nullopt : take_arrival(Duration::zero());
  if (arrival) {
    // Not complete_publish(): a pull begun now would overwrite the arrived parameters.
    complete_copy();
    passes_->open(state_.usual_step());  // before the blend, which then fills it in the same pass
    clock.enter(StepClock::Part::blend, SteadyClock::now());
    absorb(*arrival);
    clock.enter(StepClock::Part::publish, SteadyClock::now());
  } else {
    complete_publish();
    passes_->open(state_.usual_step());
  }
  state_.step_begins(SteadyClock::now());
  send(loss);
  if (state_.wants_pull(random_)) begin_pull();
}

StepReport Gossip::update_wait(const std::function<double()>& loss) {
  StepClock& clock = node_->local().steps;
  clock.enter(StepClock::Part::blend, SteadyClock::now());
  complete_publish();
  const auto pulling = [this] { return pull_wanted_ || fetching_ || node_->client().under_way(); };
  // Before the check for an arrival: a pull that ends later belongs to a later step.
  bool pending = pulling();
  Duration waited{};
  if (!state_.blended()) {
    if (const auto arrival = await_arrival(waited)) {
      absorb(*arrival, loss);
      pending = pulling();
    }
    pending = pending || fetching_;
  }
  StepReport report = state_.end_step(pending, waited);
  Traffic& traffic = node_->local().traffic;
  traffic.pulls_ok = report.pulls_ok;
  traffic.pulls_failed = report.pulls_failed;
  clock.end_step(report, SteadyClock::now());
  return report;
}

std::optional<Arrival> Gossip::take_arrival(Duration patience) {
  if (!fetching_) {
    fetching_ = node_->client().take(patience);
    if (fetching_ && fetching_->outcome == Outcome::mixed)
      parameters_.fetch(node_->client().landing());
  }
  if (!fetching_ || (fetching_->outcome == Outcome::mixed && !parameters_.fetched()))
    return std::nullopt;
  return std::exchange(fetching_, std::nullopt);
}

std::optional<Arrival> Gossip::await_arrival(Duration& waited) {
  const TraceScope traced(Track::trainer, "wait");
  Client& client = node_->client();
  const auto from = SteadyClock::now();
  const auto until = from + config_.gossip.step_budget;
  // An accelerator must have finished the publish, and with the landing, before the pull begins.
  // Where nothing was published it waits for a later step.
  const auto works = [this] { return passes_->under_way() || !parameters_.landing_is_free(); };
  while (pull_wanted_ && works() && !fetching_ && !client.under_way() &&
         SteadyClock::now() < until) {
    std::this_thread::sleep_for(settle_poll);
    complete_publish();
  }
  auto arrival = take_arrival(std::max(Duration::zero(), Duration(until - SteadyClock::now())));
  while (!arrival && fetching_ && SteadyClock::now() < until) {
    std::this_thread::sleep_for(settle_poll);
    arrival = take_arrival(Duration::zero());
  }
  if (config_.gossip.step_budget > Duration::zero()) waited = SteadyClock::now() - from;
  return arrival;
}

void Gossip::absorb(const Arrival& arrival, const std::function<double()>& loss) {
  if (arrival.incomparable) side().report_unless_finite();
  const auto others = state_.needs_surroundings(arrival) ? surroundings() : Surroundings{};
  const TimePoint now = now_();
  const Absorbed what = state_.absorb(arrival, others, now);
  if (what == Absorbed::blend) {
    const double factor = state_.blend(arrival, loss ? loss() : passes_->loss());
    passes_->blend(node_->client().landing(), factor);
  } else if (what == Absorbed::adopt) {
    passes_->assign(node_->client().landing().bytes());
    state_.take_over(arrival, now);
    said_not_finite_ = false;
  }
  log_state();
}

Surroundings Gossip::surroundings() {
  LocalNode& local = node_->local();
  for (const auto& [peer, weights] : local.served.take_given())
    given_.insert_or_assign(peer, weights);
  return {local.members->all(), given_};
}

void Gossip::log_state() {
  for (TrainerLine& line : state_.take_lines()) {
    if (!line.limit.empty()) {
      const auto held_back = log_limiter_.pass(line.limit, SteadyClock::now());
      if (!held_back) continue;
      line.text += since_words(*held_back);
    }
    log_lines({line});
  }
}

FinishReport Gossip::finish() {
  if (node_ == nullptr) return {};
  TrainerSide side = this->side();
  const FinishReport report = run_final_average(side);
  leave();
  return report;
}

void Gossip::leave() {
  if (node_) node_->stop();
}

void Gossip::show(const std::string& name, double value) {
  if (node_) node_->local().shown.set(name, value);
}

void Gossip::reload(const Config& fresh) {
  Config running = config_;
  running.nodes = in_force(listed_, config_.self_node());
  ReloadPlan plan = plan_reload(running, fresh);
  plan.config.nodes = config_.nodes;
  std::vector<NodeEntry> listed = fresh.nodes;
  const std::vector<LogLine> lines = lines_of(plan);
  NewLog opened = open_log(plan.config);  // opens its file again
  if (node_) node_->take_up(plan);
  // Nothing below can fail.
  opened.use();
  listed_ = std::move(listed);
  config_ = std::move(plan.config);
  state_.reload(pace_of(config_.gossip));
  for (const LogLine& line : lines) log(line.level, "config", line.text);
  if (node_) node_->endpoint().reload_security();
}

}  // namespace dpwa
