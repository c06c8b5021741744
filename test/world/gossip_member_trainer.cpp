// The trainer's side of GossipMember: its start, steps and end.
#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "test/world/gossip_member.h"

namespace dpwa::world::testing {

using namespace std::chrono_literals;

namespace {

constexpr Duration never = 24h;

}  // namespace

NodePlace GossipMember::place() const {
  if (options_.by_seeds) return {.name = environment_.name(), .listing = Listing::by_seeds};
  return {.name = environment_.name(),
          .position = position_,
          .file_peers = options_.names.size() - (joins() ? 0 : 1),
          .listing = joins() ? Listing::joins : Listing::listed};
}

void GossipMember::begin() {
  StartUpOptions options;
  static_cast<NodePlace&>(options) = place();
  options.rule.listing = options.listing;
  if (options.listing != Listing::listed) options.join_by = options_.names.front();
  options.rule.start_wait = options_.start_wait;
  options.rule.limit = 2 * options_.start_wait + 4 * options_.timeout;
  options.rule.min_nodes = options_.min_nodes;
  options.timeout = options_.timeout;
  options.firewall = options_.pulls.firewall;
  options.new_lineage = random_.next() | 1U;
  options.weights = {trainer_.clock(), trainer_.lineage(), resumed_};
  begun_ = now();
  start_.emplace(std::move(options), now());
  begin_again();
}

void GossipMember::end_wait() {
  new_caller_ = false;
  begin_again();
}

// A wait of the start is over, if there was one.
void GossipMember::begin_again() {
  waiting_ = false;
  ++waits_;
  while (perform(start_->next(now(), random_))) continue;
}

// Returns whether the next action may follow at once.
bool GossipMember::perform(const StartUp::Action& action) {
  for (const TrainerLine& line : start_->take_lines()) conduct_.said(line.text);
  if (std::holds_alternative<StartUp::Visit>(action)) {
    visit([this](const std::vector<PeerAnswer>& answers) {
      start_->visited(answers, now());
      begin_again();
    });
    return false;
  }
  if (std::holds_alternative<StartUp::Greet>(action)) {
    greet([this](const std::vector<PeerAnswer>& answers) {
      for (const PeerAnswer& answer : answers) {
        const bool counts = answer.listed || options_.by_seeds;
        if (!answer.failure && counts && answer.lineage != 0)
          trainer_.lineages().hear(answer.name, {answer.lineage, answer.clock}, answer.listed);
      }
      looked_ = answers;
      start_->greeted(answers, now());
      begin_again();
    });
    return false;
  }
  if (const auto* shown = std::get_if<StartUp::Publish>(&action)) {
    trainer_.replace(shown->clock, shown->lineage);
    publish(trainer_.progress());
    start_->published(true);
    return true;
  }
  if (const auto* pull = std::get_if<StartUp::Pull>(&action)) {
    begin_round(round_with(pull->peer, take_over, pull->timeout), [this](const Arrival& arrival) {
      TakeOver result = TakeOver::failed;
      const bool declined =
          arrival.outcome == Outcome::busy || arrival.outcome == Outcome::not_ready;
      if (declined) result = TakeOver::busy;
      if (arrival.outcome == Outcome::mixed) {
        result = TakeOver::taken;
        take_over_at_start(arrival);
      }
      start_->pulled(result, arrival.progress.clock, arrival.progress.lineage, now());
      begin_again();
    });
    return false;
  }
  if (const auto* measure = std::get_if<StartUp::Measure>(&action)) {
    begin_round(
        round_with(measure->peer, compare_only, options_.timeout), [this](const Arrival& arrival) {
          const bool compares =
              arrival.outcome == Outcome::mixed && arrival.progress.lineage == trainer_.lineage();
          start_->measured(compares ? std::optional(arrival.stats.squared_distance) : std::nullopt);
          begin_again();
        });
    return false;
  }
  if (const auto* wait = std::get_if<StartUp::Wait>(&action)) {
    const Duration shortest = std::min<Duration>(wait->time, 20ms);
    const std::uint64_t which = waits_;
    environment_.after(shortest, [this, which] {
      if (which != waits_) return;
      waiting_ = true;
      if (new_caller_) end_wait();
    });
    environment_.after(wait->time, [this, which] {
      if (which == waits_) end_wait();
    });
    return false;
  }
  if (const auto* fail = std::get_if<StartUp::Fail>(&action)) {
    conduct_.cannot_begin(fail->line);
    // One that joins needs the weights of others, and is started again.
    if (!joins()) checks_.fail(environment_.name() + " cannot begin: " + fail->line);
    environment_.crash(joins() ? Duration(1s) : never);
    return false;
  }
  start_.reset();
  begin_training();
  return false;
}

void GossipMember::begin_training() {
  state_ = GossipState::training;
  conduct_.begun(*this);
  step();
}

// A clock that others may be about to confirm is not given up (start_rule.h). That of the peer may
// have fallen since the look, by a blend.
void GossipMember::take_over_at_start(const Arrival& arrival) {
  const auto peer = std::ranges::find(looked_, arrival.peer_name, &PeerAnswer::name);
  const bool gives_up =
      !options_.by_seeds && arrival.progress.lineage != kept_.lineage && peer->clock < kept_.clock;
  const bool all_answer = std::ranges::none_of(
      looked_, [](const PeerAnswer& each) { return each.failure.has_value(); });
  if (gives_up && !all_answer && now() - begun_ < options_.start_wait)
    checks_.fail(environment_.name() + " gives up its checkpoint before all have answered");
  model_ = landed_.peer->model;
  trainer_.replace(arrival.progress.clock, arrival.progress.lineage);
}

// As Gossip::update_send(), then the pass over the samples.
void GossipMember::step() {
  if (conduct_.stands_still) return environment_.after(conduct_.step_time, [this] { step(); });
  if (arrival_ && !trainer_.blended()) absorb();
  trainer_.step_begins(now());
  publish(trainer_.publish());
  const auto fresh_for = trainer_.fresh_for();
  fresh_until_ = fresh_for && options_.fresh_only ? now() + *fresh_for : TimePoint::max();
  if (trainer_.wants_pull(random_) && conduct_.calls && !round_over_ && !arrival_) {
    const RoundSpec round = trainer_.plan_pull(random_);
    trainer_.began(round);
    begin_round(round, [this](const Arrival& arrival) { arrival_ = arrival; });
  }
  environment_.after(conduct_.next_step(random_), [this] { end_step(); });
}

// As Gossip::update_wait().
void GossipMember::end_step() {
  conduct_.train(model_, random_);
  if (arrival_ && !trainer_.blended()) absorb();
  trainer_.end_step(static_cast<bool>(round_over_), {});
  trainer_.take_lines();
  conduct_.stepped(*this);
  if (options_.steps_to_checkpoint != 0 && ++steps_ % options_.steps_to_checkpoint == 0)
    environment_.write("checkpoint",
                       Kept{model_, trainer_.clock(), trainer_.lineage(), incarnation_}, [] {});
  if (options_.ends) return begin_end();
  step();
}

void GossipMember::absorb() {
  const Arrival arrival = *std::exchange(arrival_, std::nullopt);
  Surroundings others;
  if (trainer_.needs_surroundings(arrival)) {
    const auto& members = members_.members();
    others = {{members.begin(), members.end()}, given_};
  }
  const Absorbed what = trainer_.absorb(arrival, others, now());
  if (what == Absorbed::blend) {
    const Model& peer = landed_.peer->model;
    checks_.blended(environment_.name(), model_, peer);
    // Blocks of the model are blended in its place, each as a part of all of it.
    const auto blocks = static_cast<double>(trainer_.block_shares().size());
    const double moved = trainer_.blend(arrival, 0) / blocks;
    for (std::size_t i = 0; i < model_.values.size(); ++i)
      model_.values[i] += moved * (peer.values[i] - landed_.own->model.values[i]);
    ++blends_;
    conduct_.blended(arrival);
  } else if (what == Absorbed::adopt) {
    model_ = landed_.peer->model;
    trainer_.take_over(arrival, now());
  }
}

void GossipMember::begin_end() {
  FinalAverageOptions options;
  static_cast<NodePlace&>(options) = place();
  options.timeout = options_.timeout;
  options.finish_wait = options_.finish_wait;
  options.lineage = trainer_.lineage();
  average_.emplace(std::move(options), now());
  end_next();
}

void GossipMember::end_next() {
  while (perform(average_->next(now(), served_))) average_->take_lines();
}

// Returns whether the next action may follow at once.
bool GossipMember::perform(const FinalAverage::Action& action) {
  const auto again = [this] { end_next(); };
  if (std::holds_alternative<FinalAverage::Drain>(action)) {
    if (!round_over_) {
      arrival_.reset();
      return true;
    }
    round_over_ = [again](const Arrival&) { again(); };
    return false;
  }
  if (std::holds_alternative<FinalAverage::Publish>(action)) {
    Progress progress = trainer_.progress();
    progress.final = true;
    model_.last = checks_.next_number();
    publish(progress);
    fresh_until_ = TimePoint::max();
    state_ = GossipState::finished;
    average_->published(true, now());
    return true;
  }
  if (std::holds_alternative<FinalAverage::Greet>(action)) {
    greet([this, again](const std::vector<PeerAnswer>& answers) {
      average_->greeted(answers, now());
      again();
    });
    return false;
  }
  if (std::holds_alternative<FinalAverage::TakeBuffer>(action)) {
    average_->took_buffer(true, now());
    return true;
  }
  if (const auto* pull = std::get_if<FinalAverage::Pull>(&action)) {
    const Exchange& exchange = pull->last ? take_final : read_final;
    begin_round(round_with(pull->peer, exchange, pull->timeout),
                [this, again](const Arrival& arrival) {
                  const bool landed = arrival.outcome == Outcome::mixed;
                  if (landed) read_ = landed_.peer->model;
                  average_->pulled(landed ? std::optional(arrival.progress) : std::nullopt,
                                   arrival.outcome == Outcome::busy,
                                   landed ? std::sqrt(arrival.stats.squared_distance) : 0, now());
                  again();
                });
    return false;
  }
  if (const auto* confirm = std::get_if<FinalAverage::Confirm>(&action)) {
    begin_round(round_with(confirm->peer, confirm_final, confirm->timeout),
                [again](const Arrival&) { again(); });
    return false;
  }
  if (const auto* sketch = std::get_if<FinalAverage::Sketch>(&action)) {
    ModelSketch all;
    const Model& model = sketch->own ? model_ : read_;
    std::ranges::copy(model.values, all.sums.begin());
    average_->sketched(all);
    return true;
  }
  if (const auto* folded = std::get_if<FinalAverage::Fold>(&action)) {
    if (folded->count == 1) folded_.clear();
    const Model& model = folded->own ? model_ : read_;
    folded_.insert(model.last);
    fold(model, folded->count);
    return true;
  }
  if (const auto* replace = std::get_if<FinalAverage::Replace>(&action)) {
    average_->replaced(replace->measures ? 1 : std::nan(""));
    model_ = mean_;
    return true;
  }
  if (const auto* wait = std::get_if<FinalAverage::Wait>(&action)) {
    environment_.after(wait->time, again);
    return false;
  }
  checks_.ended(environment_.name(), folded_, model_);
  leave();
  return false;
}

void GossipMember::fold(const Model& model, std::size_t count) {
  if (count == 1) {
    mean_ = model;
    return;
  }
  checks_.blended(environment_.name(), mean_, model);
  for (std::size_t i = 0; i < mean_.values.size(); ++i)
    mean_.values[i] += (model.values[i] - mean_.values[i]) / static_cast<double>(count);
}

void GossipMember::leave() {
  members_.leave();
  for (const MemberClaim& member : members_.some_running(3, members_random_)) {
    GossipQuery query;
    query.members = members_.request(member.name, now());
    call(member.name, std::move(query), options_.timeout, [](const GossipReply&) {});
  }
  environment_.after(5ms, [this] { environment_.crash(never); });
}

}  // namespace dpwa::world::testing
