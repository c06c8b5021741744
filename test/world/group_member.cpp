#include "test/world/group_member.h"

#include <algorithm>

#include "dpwa/base/random.h"

namespace dpwa::world::testing {

using members::Member;
using members::ProcessId;
using members::Progress;
using members::View;
using members::ViewEngine;

namespace {

constexpr Duration restart = std::chrono::milliseconds(20);
constexpr int looks = 4;         // in each patience
constexpr int silent_looks = 6;  // without a word: suspected

std::uint64_t settings_of(const GroupOptions& options, const std::string& name) {
  return name == options.odd ? 8 : 7;
}

members::GroupEngineOptions engine_options(const GroupOptions& options, const std::string& name) {
  members::GroupEngineOptions group;
  group.view = {
      .self = {},
      .names = options.names,
      .minimum = options.minimum,
      .settings = settings_of(options, name),
      .serves = options.servers.contains(name),
      .quorum = options.servers.empty() ? members::Quorum::majority : members::Quorum::with_servers,
      .patience = options.patience};
  group.beat = options.patience / looks;
  group.lost_after = silent_looks * group.beat;
  // One with other settings would stay in the run that the others give up, under a higher number.
  group.ends_with_its_processes = options.loses_disks && options.odd.empty();
  return group;
}

}  // namespace

GroupMember::GroupMember(Environment& environment, const GroupOptions& options, GroupChecks& checks,
                         Traps& traps)
    : GroupProcess(environment, traps, engine_options(options, environment.name())),
      options_(options),
      checks_(checks) {
  checks_.decided(view_);
}

bool GroupMember::is_member() const {
  return view_.votes(id());
}

void GroupMember::ticked() {
  const TimePoint now = environment_.now();
  if (is_member() && leaves()) views().leave();
  if (is_member() && now - moved_ > 5 * options_.patience) {
    views().renew();
    moved_ = now;
  }
  if (engine().standing() == ViewEngine::Standing::left) return end(restart);
  report();
  repair();
}

void GroupMember::reset() {
  ++life_;
  has_state_ = computing_ = false;
  giver_.reset();
  steps_done_ = state_ = committed_ = 0;
  inputs_.clear();
  received_.clear();
  results_.clear();
  reported_.clear();
}

void GroupMember::installed(const View& view) {
  const View former = std::exchange(view_, view);
  moved_ = environment_.now();
  done_before_ = view_.done();
  checks_.acts_in(id(), view_, settings_of(options_, id().name));
  const Member* const self = view_.member(id());
  // The one before was of a run that has ended, perhaps without a view that says so.
  const bool follows = former.open() && view_.number == former.number + 1;
  const bool begins = self != nullptr && !self->joining && (follows || view_.run != former.run);
  if (begins) {
    reset();
    has_state_ = true;
    if (views().begin_at(view_.number, 0)) views().note_state(0, state_);
  } else if (self == nullptr || former.member(id()) == nullptr) {
    reset();
  }
  received_.clear();
  reported_.clear();
  if (self == nullptr) return;
  const bool latest = engine().view().number == view_.number;
  if (latest && former.votes(id()) && !self->joining) checks_.stays(*self, engine().progress());
  if (self->joining) {
    const ProcessId giver = view_.members.front().id;
    if (giver_ != giver) {
      reset();
      if (latest && engine().giver() == giver && engine().progress() != Progress{})
        checks_.fail("a state outlives its giver");
    }
    giver_ = giver;
    return;
  }
  if (!has_state_) {
    checks_.fail("a member has no state");
    return;
  }
  // What nobody has completed is repeated, from the same inputs.
  std::vector<std::uint64_t> open;
  for (const auto& [operation, value] : inputs_) {
    if (!engine().progress().has(operation) && !done_before_.has(operation))
      open.push_back(operation);
  }
  for (const std::uint64_t operation : open) contribute(operation);
  const auto early = std::exchange(early_, {});
  for (const auto& [from, contribution] : early) take(from, contribution);
  if (!computing_) begin_step();
  repair();
}

void GroupMember::begin_step() {
  if (!is_member() || !has_state_ || computing_) return;
  if (inputs_.contains(through() + 1)) return;  // has begun
  computing_ = true;
  for (std::uint64_t i = 1; i <= operations_of_step; ++i) {
    const auto time = options_.compute * static_cast<std::int64_t>(i) / operations_of_step;
    environment_.after(time, [this, i, life = life_, operation = through() + i] {
      if (life != life_) return;
      if (i == operations_of_step) computing_ = false;
      inputs_[operation] = derive_seed(state_, {hash_of(id().name), id().nonce, operation});
      if (is_member() && !engine().progress().has(operation) && !done_before_.has(operation))
        contribute(operation);
      pump();
    });
  }
}

void GroupMember::contribute(std::uint64_t operation) {
  const Contribution own{view_.number, operation, inputs_.at(operation)};
  for (const ProcessId& voter : view_.voters()) {
    if (voter != id())
      tell<GroupMember>(voter.name, [from = id(), own](GroupMember& to) { to.take(from, own); });
  }
  take(id(), own);
}

void GroupMember::take(const ProcessId& from, const Contribution& contribution) {
  if (contribution.view > view_.number) early_.emplace_back(from, contribution);
  if (contribution.view != view_.number || !view_.votes(from)) return;
  checks_.contributes(done_before_, contribution.operation);
  received_[contribution.operation][from] = contribution.value;
  try_complete(contribution.operation);
}

void GroupMember::try_complete(std::uint64_t operation) {
  const auto& parts = received_[operation];
  if (!is_member() || parts.size() < view_.voters().size()) return;
  if (engine().progress().has(operation) || !views().complete(view_.number, operation)) return;
  std::uint64_t result = derive_seed(view_.run, {operation});
  for (const auto& [process, value] : parts)
    result = derive_seed(result, {hash_of(process.name), process.nonce, value});
  finish(operation, result);
}

void GroupMember::finish(std::uint64_t operation, std::uint64_t result) {
  results_[operation] = result;
  checks_.completes(view_, operation);
  moved_ = environment_.now();
  close_steps();
  report();
}

void GroupMember::close_steps() {
  while (engine().progress().through >= through() + operations_of_step) {
    for (std::uint64_t i = 1; i <= operations_of_step; ++i)
      state_ = derive_seed(state_, {results_.at(through() + i)});
    ++steps_done_;
    inputs_.erase(inputs_.begin(), inputs_.upper_bound(through()));
    views().note_state(through(), state_);
    if (is_member()) checks_.state(view_, through(), state_);
    if (is_member()) {
      ++life_;
      computing_ = false;
      begin_step();
    }
  }
}

void GroupMember::report() {
  if (!is_member()) return;
  for (const ProcessId& voter : view_.voters()) {
    if (voter == id()) continue;
    tell<GroupMember>(voter.name, [from = id(), view = view_.number, done = engine().progress()](
                                      GroupMember& to) { to.take_report(from, view, done); });
  }
  take_report(id(), view_.number, engine().progress());
}

void GroupMember::take_report(const ProcessId& from, std::uint64_t view, const Progress& done) {
  if (view != view_.number || !is_member()) return;
  reported_[from] = done;
  if (reported_.size() < view_.voters().size()) return;
  while (std::ranges::all_of(reported_,
                             [&](const auto& each) { return each.second.through > committed_; })) {
    ++committed_;
    // One that has joined has no results from before.
    if (const auto own = results_.find(committed_); own != results_.end())
      checks_.commit(view_, committed_, own->second);
  }
}

// Asks for what others have.
void GroupMember::repair() {
  const Member* const self = view_.member(id());
  if (self == nullptr) return;
  if (self->joining) {
    if (!giver_) return;
    if (!has_state_) {
      tell<GroupMember>(giver_->name, [from = id()](GroupMember& to) { to.answer_state(from); });
    } else {
      for (std::uint64_t i = 1; i <= operations_of_step; ++i)
        tell<GroupMember>(giver_->name, [from = id(), operation = engine().progress().through + i](
                                            GroupMember& to) { to.answer_fetch(from, operation); });
    }
    return;
  }
  const Progress& done = done_before_;
  const std::uint64_t last = done.beyond.empty() ? done.through : *done.beyond.rbegin();
  for (std::uint64_t operation = engine().progress().through + 1; operation <= last; ++operation) {
    if (engine().progress().has(operation) || !done.has(operation)) continue;
    for (const Member& member : view_.members) {
      if (member.done.has(operation))
        tell<GroupMember>(member.id.name, [from = id(), operation](GroupMember& to) {
          to.answer_fetch(from, operation);
        });
    }
  }
}

void GroupMember::answer_fetch(const ProcessId& to, std::uint64_t operation) {
  const auto found = results_.find(operation);
  if (!is_member() || found == results_.end()) return;
  tell<GroupMember>(
      to.name, [to, view = view_.number, operation, result = found->second](GroupMember& receiver) {
        if (receiver.id() == to) receiver.take_result(view, operation, result);
      });
}

void GroupMember::take_result(std::uint64_t view, std::uint64_t operation, std::uint64_t result) {
  if (view != view_.number || !has_state_ || engine().progress().has(operation)) return;
  if (!views().complete(view_.number, operation)) return;
  finish(operation, result);
}

void GroupMember::answer_state(const ProcessId& to) {
  if (!is_member() || !has_state_) return;
  tell<GroupMember>(to.name, [to, from = id(), view = view_.number, steps = steps_done_,
                              state = state_](GroupMember& receiver) {
    if (receiver.id() == to) receiver.take_state(from, view, steps, state);
  });
}

void GroupMember::take_state(const ProcessId& from, std::uint64_t view, std::uint64_t steps,
                             std::uint64_t state) {
  const Member* const self = view_.member(id());
  if (self == nullptr || !self->joining || has_state_ || view != view_.number) return;
  if (giver_ != from || engine().frozen()) return;
  if (!views().begin_at(view, steps * operations_of_step)) return;
  has_state_ = true;
  steps_done_ = steps;
  state_ = state;
  if (options_.spoils && environment_.random().below(3) == 0) ++state_;
  committed_ = through();
  views().note_state(through(), state_);
}

}  // namespace dpwa::world::testing
