#include "dpwa/engine/start_up.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "dpwa/base/backoff.h"
#include "dpwa/base/invariant.h"
#include "dpwa/rules/sample.h"

namespace dpwa {
namespace {

// From one look to the next, by the number of looks in a row that brought no news. A look asks
// every node, and each node looks: at a fixed short distance, nodes that wait for a missing one for
// minutes would cost each other hundreds of connections a second.
constexpr Backoff between_looks{std::chrono::milliseconds(25), std::chrono::seconds(1), 0.25};

constexpr unsigned most_in_vain = 3;  // looks

StartView view_of(const PeerAnswer& answer) {
  if (answer.failure == PeerFailure::rejected) return {PeerStart::refused};
  // This node cannot take over its weights, so it counts as absent.
  if (answer.failure) return {PeerStart::unreachable};
  if (answer.joining && answer.lineage == 0) return {PeerStart::joining};
  return {answer.joining ? PeerStart::waiting : PeerStart::ready, answer.clock, answer.lineage};
}

}  // namespace

StartUp::StartUp(StartUpOptions options, TimePoint begun)
    : options_(std::move(options)), begun_(begun), clock_(options_.weights.clock) {
  if (by_seeds()) after_pause_ = Phase::visiting;
  if (!options_.weights.resumed) return;
  own_ = options_.weights;
  if (own_->lineage == 0) own_->lineage = options_.new_lineage;
}

StartUp::Action StartUp::next(TimePoint now, Random& random) {
  stood_still(now);
  const Action action = next_action(now, random);
  due_ = now + longest(action);
  return action;
}

// How long the driver takes at most to perform it.
Duration StartUp::longest(const Action& action) const {
  if (const auto* pull = std::get_if<Pull>(&action)) return 2 * pull->timeout;
  if (const auto* wait = std::get_if<Wait>(&action)) return wait->time;
  return paced(2 * options_.timeout, seen_.size());
}

// Whether this process was stopped since it was asked for the last action. It does not count that
// time: it would find the wait for others to be over, and bring weights of its own beside those
// that they have come to train meanwhile.
bool StartUp::stood_still(TimePoint now) {
  if (!due_ || now - *due_ <= 4 * options_.timeout) return false;
  begun_ += now - *due_;
  due_.reset();
  return true;
}

StartUp::Action StartUp::next_action(TimePoint now, Random& random) {
  if (!announced_) {
    announced_ = now;
    warn_of_many();
  }
  while (!failure_) {
    switch (phase_) {
      case Phase::opening:
        // A full pull needs an own snapshot. Without a lineage no node uses it as weights to begin
        // with, and no node begins before this one has looked around once.
        return Publish{clock_, 0};
      case Phase::visiting:
        return Visit{};
      case Phase::looking:
        greeted_at_ = now;
        return Greet{};
      case Phase::deciding:
        if (const auto action = decide(now, random)) return *action;
        break;
      case Phase::taking:
        if (const auto action = take(now)) return *action;
        break;
      case Phase::pausing:
        phase_ = after_pause_;
        return pause(now, random);
      case Phase::ending:
        phase_ = Phase::over;
        if (own_ && !shown_) return show();
        break;
      case Phase::over:
        return Begin{};
    }
  }
  return Fail{*failure_};
}

StartUp::Wait StartUp::pause(TimePoint now, Random& random) {
  const Duration next = next_moment(elapsed(now), seen_.size(), options_.rule) - elapsed(now);
  const Duration wanted = std::min(between_looks.delay(++looks_without_news_, random), next);
  return {std::max(paced(wanted, seen_.size()), paced(between_looks.initial / 2, seen_.size()))};
}

std::vector<TrainerLine> StartUp::take_lines() {
  return std::exchange(lines_, {});
}

StartUp::Publish StartUp::show() const {
  return {clock_, lineage_};
}

void StartUp::published(bool done) {
  DPWA_INVARIANT(phase_ == Phase::opening || phase_ == Phase::deciding || phase_ == Phase::taking ||
                     phase_ == Phase::over,
                 "a node publishes where its start asks for it", phase_);
  if (phase_ == Phase::opening) {
    phase_ = options_.join_by.empty() ? Phase::looking : Phase::visiting;
    if (own_) lineage_ = own_->lineage;
  } else if (phase_ == Phase::taking) {
    comparison_->published();
  } else {
    shown_ = done;
  }
}

std::optional<StartUp::Action> StartUp::decide(TimePoint now, Random& random) {
  if (own_ && !shown_ && !std::exchange(tried_to_show_, true)) return show();
  tried_to_show_ = false;
  const StartDecision decided = decision(now);
  const bool for_good =
      decided.action == StartAction::begin || decided.action == StartAction::bring;
  if (for_good && looked_late_ && late_looks_ < most_in_vain) {
    ++late_looks_;
    phase_ = after_pause_;
    return std::nullopt;
  }
  if (for_good && is_refused_alone(now)) {
    phase_ = Phase::pausing;
    return std::nullopt;
  }
  switch (decided.action) {
    case StartAction::begin:
      report_absent(now);
      phase_ = Phase::ending;
      break;
    case StartAction::give_up:
      failure_ = shortfall(now);
      break;
    case StartAction::wait:
      announce_waiting(now);
      phase_ = Phase::pausing;
      break;
    case StartAction::bring:
      looks_without_news_ = 0;
      lineage_ = options_.new_lineage;
      own_ = StartWeights{clock_, lineage_, false};
      shown_ = false;
      break;
    case StartAction::pull_from:
      compare(seen_[decided.peer], random);
      break;
  }
  return std::nullopt;
}

StartDecision StartUp::decision(TimePoint now) const {
  std::vector<StartView> views;
  std::size_t self = 0;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    views.push_back(seen_[i].view);
    if (!seen_[i].peer) {
      self = i;
    } else if (const auto known = memory_.find(*seen_[i].peer); known != memory_.end()) {
      views.back().failed_pulls = known->second.failed_pulls;
      views.back().taken_over = known->second.taken_over;
      views.back().together = known->second.together;
    }
  }
  return decide_start(views, self, own_, elapsed(now), options_.rule);
}

void StartUp::give_up_if_refused(TimePoint now) {
  const bool waited = elapsed(now) >= options_.rule.start_wait;
  bool refused = false;
  for (const Seen& node : seen_) {
    if (!node.peer) continue;
    if (answered(node.view.state)) return;
    if (node.view.state != PeerStart::refused && !waited) return;
    refused = refused || node.view.state == PeerStart::refused;
  }
  if (!refused) return;
  failure_ = "node '" + options_.name + "' was refused by every node that answered: " + refusal_;
}

void StartUp::visited(const std::vector<PeerAnswer>& answers, TimePoint now) {
  DPWA_INVARIANT(phase_ == Phase::visiting, "a node visits where its start asks for it", phase_);
  look_for_namesake(answers, now);
  if (failure_) return;
  std::string why;
  bool all_refuse = true;
  for (const PeerAnswer& seed : answers) {
    if (!seed.failure) {
      if (!by_seeds() || !found_)
        lines_.push_back({false, by_seeds() ? "found '" + seed.name + "' by a seed"
                                            : "joined by '" + seed.name + "'"});
      found_ = true;
      continue;
    }
    const bool silent =
        seed.failure == PeerFailure::unreachable || seed.failure == PeerFailure::timed_out;
    if (!by_seeds() || !silent) why = seed.detail;
    all_refuse = all_refuse && seed.failure == PeerFailure::rejected && !seed.refuses_name;
  }
  after_pause_ = found_ && !by_seeds() ? Phase::looking : Phase::visiting;
  phase_ = found_ || by_seeds() ? Phase::looking : Phase::pausing;
  refused_by_seeds_ = by_seeds() && !found_ ? why : "";
  const bool gives_up = elapsed(now) >= options_.rule.start_wait || all_refuse;
  if (phase_ == Phase::looking || !gives_up) return;
  failure_ = "node '" + options_.name + "' cannot join by " + options_.join_by + ": " +
             (name_refused_ ? refusal_ : why);
}

// No seed has to be there, but nobody begins alone beside one that refuses it. Another program that
// answers at a seed does no harm once other nodes are known.
bool StartUp::is_refused_alone(TimePoint now) {
  if (refused_by_seeds_.empty() || !is_alone()) return false;
  if (elapsed(now) >= options_.rule.start_wait)
    failure_ = "node '" + options_.name +
               "' was refused by its seeds: " + (name_refused_ ? refusal_ : refused_by_seeds_);
  return true;
}

// A refusal because of the name may be temporary (the last process of that name has just ended),
// and nodes that have not heard of the other process do not refuse. So most nodes must refuse for a
// while before this node gives up. Until the wait is over that means most of the nodes that could
// answer, so that a single node turns no other away.
void StartUp::look_for_namesake(const std::vector<PeerAnswer>& answers, TimePoint now) {
  constexpr auto patience = std::chrono::seconds(1);
  std::size_t refused = 0;
  std::size_t admitted = 0;
  for (const PeerAnswer& peer : answers) {
    if (peer.refuses_name) {
      ++refused;
      refusal_ = peer.detail;
    } else if (!peer.failure) {
      ++admitted;
    }
  }
  if (refused <= admitted) {
    if (admitted > 0) name_refused_.reset();
    // A peer that has refused closes further connections without a word: its silence does not take
    // the refusal back.
    if (admitted > 0 || !name_refused_) return;
  }
  if (!name_refused_) name_refused_ = now;
  if (elapsed(now) < options_.rule.start_wait && 2 * refused <= answers.size()) return;
  if (now - *name_refused_ < patience) return;
  failure_ = "node '" + options_.name + "' was refused: " + refusal_;
}

void StartUp::greeted(const std::vector<PeerAnswer>& answers, TimePoint now) {
  DPWA_INVARIANT(phase_ == Phase::looking, "a node greets where its start asks for it", phase_);
  looked_late_ = due_ && now > *due_;
  looks_in_vain_ = stood_still(now) ? looks_in_vain_ + 1 : 0;
  // What did not answer in time says nothing: it looks again. A machine may be as slow as that.
  if (looks_in_vain_ > 0 && looks_in_vain_ <= most_in_vain) return;
  const bool prompt = now - greeted_at_ < options_.timeout;
  std::vector<PeerAnswer> listed;  // a node that may join may do so under many names
  for (const PeerAnswer& answer : answers)
    if (answer.listed || (by_seeds() && answer.asked)) listed.push_back(answer);
  look_for_namesake(listed, now);
  if (failure_) return;
  const auto before = std::exchange(seen_, {});
  bool placed = false;
  for (std::size_t peer = 0; peer < answers.size(); ++peer) {
    const PeerAnswer& answer = answers[peer];
    if (answer.failure == PeerFailure::rejected) refusal_ = answer.detail;
    // A joined node that does not answer is not waited for.
    const bool of_file = peer < options_.file_peers;
    if (!answer.asked || (!of_file && answer.failure)) continue;
    if (peer >= options_.position && options_.listing != Listing::joins &&
        !std::exchange(placed, true))
      seen_.push_back({});
    seen_.push_back(seen_of(static_cast<PeerId>(peer), answer, prompt));
  }
  if (!placed) seen_.push_back({});
  if (by_seeds())
    std::ranges::sort(seen_, {},
                      [this](const Seen& each) { return each.peer ? each.name : options_.name; });
  if (!std::ranges::equal(before, seen_, says_the_same)) looks_without_news_ = 0;
  give_up_if_refused(now);
  phase_ = Phase::deciding;
  tried_to_show_ = false;
}

// The clock of a node that trains always changes.
bool StartUp::says_the_same(const Seen& before, const Seen& now) {
  return before.peer == now.peer && before.name == now.name &&
         before.view.state == now.view.state && before.view.lineage == now.view.lineage;
}

// `prompt`: the look ended before its deadline, so an unreachable peer is not running.
StartUp::Seen StartUp::seen_of(PeerId peer, const PeerAnswer& answer, bool prompt) {
  Seen seen{view_of(answer), peer, answer.name};
  seen.view.joined = !answer.listed && !by_seeds();
  const PeerStart state = seen.view.state;
  if (state == PeerStart::joining || state == PeerStart::waiting ||
      (prompt && answer.failure == PeerFailure::unreachable)) {
    memory_[peer].together = true;
  }
  return seen;
}

void StartUp::compare(const Seen& best, Random& random) {
  best_ = *best.peer;
  best_trains_ = best.view.state == PeerStart::ready;
  const StartComparison::Rule rule{options_.blocks, begun_ + options_.rule.limit};
  comparison_.emplace(best_, others_to_compare(best, random), rule);
  phase_ = Phase::taking;
}

std::vector<PeerId> StartUp::others_to_compare(const Seen& best, Random& random) const {
  constexpr std::size_t most_others = 4;
  const DistancePolicy policy = options_.firewall.distance;
  if (policy != DistancePolicy::clip && policy != DistancePolicy::refuse) return {};
  Sample<PeerId> others(most_others, random);
  for (const Seen& node : seen_) {
    const StartView& view = node.view;
    const auto known = node.peer ? memory_.find(*node.peer) : memory_.end();
    const bool failed = known != memory_.end() && known->second.failed_pulls > 0;
    const bool ready = view.state == PeerStart::ready && !failed;
    const bool behind = own_ && own_->resumed && !(view.clock >= own_->clock);
    if (!node.peer || node.peer == best.peer || !ready || behind) continue;
    if (view.lineage != best.view.lineage) continue;
    others.offer(*node.peer);
  }
  if (others.values().size() < 2) return {};
  return others.values();
}

// A pull may take half of the remaining time, so that one that hangs leaves time for another. When
// no node trains, all pulls have to end with the wait, because others wait for this node.
std::optional<StartUp::Action> StartUp::take(TimePoint now) {
  StartComparison& comparison = *comparison_;
  if (const auto result = comparison.result()) {
    count(best_, *result, now);
    if (*result == TakeOver::taken) {
      looks_without_news_ = 0;
      own_ = StartWeights{clock_, lineage_, false};
      shown_ = false;
      phase_ = Phase::deciding;
    } else {
      announce_waiting(now);
      phase_ = Phase::pausing;
    }
    comparison_.reset();
    return std::nullopt;
  }
  if (const auto source = comparison.source()) {
    const Duration left =
        (best_trains_ ? options_.rule.limit : options_.rule.start_wait) - elapsed(now);
    const Duration longest = std::max(options_.timeout, options_.rule.start_wait);
    return Pull{*source, std::clamp<Duration>(left / 2, options_.timeout, longest)};
  }
  if (comparison.publishes()) return Publish{clock_, lineage_};
  const auto ask = comparison.next_distance(now);
  if (auto line = comparison.take_line()) lines_.push_back(std::move(*line));
  if (!ask) return std::nullopt;
  return Measure{ask->peer, ask->block};
}

void StartUp::pulled(TakeOver outcome, double clock, std::uint64_t lineage, TimePoint now) {
  DPWA_INVARIANT(phase_ == Phase::taking && comparison_,
                 "weights are pulled where the start asks for them", phase_, outcome);
  if (outcome == TakeOver::taken) {
    clock_ = clock;
    lineage_ = lineage;
  }
  comparison_->took_over(outcome);
  if (const auto other = comparison_->take_other_failed()) count(*other, outcome, now);
}

void StartUp::measured(std::optional<double> squared_distance) {
  DPWA_INVARIANT(phase_ == Phase::taking && comparison_,
                 "a distance is measured where the start asks for it", phase_);
  comparison_->measured(squared_distance);
}

// A peer may be busy with other starting nodes; one that stays busy for long counts as failed.
void StartUp::count(PeerId peer, TakeOver outcome, TimePoint now) {
  Memory& memory = memory_[peer];
  if (outcome == TakeOver::taken) ++memory.taken_over;
  if (outcome == TakeOver::failed) ++memory.failed_pulls;
  if (outcome != TakeOver::busy) return;
  if (!memory.busy) memory.busy = now;
  if (now - *memory.busy < options_.rule.start_wait / 8) return;
  ++memory.failed_pulls;
  memory.busy = now;
}

}  // namespace dpwa
