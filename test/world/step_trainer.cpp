// The training thread of StepMember: what CollectiveAdapter, Starter, Stepper and StateTransfer do
// one after the other.
#include <algorithm>
#include <utility>

#include "dpwa/base/random.h"
#include "test/world/step_member.h"

namespace dpwa::world::testing {

using members::MemberState;
using members::StepCounts;

namespace {

constexpr Duration restart = std::chrono::milliseconds(50);
constexpr std::size_t between_checkpoints = 4;  // steps

}  // namespace

StepMember::Until StepMember::pause(Duration time) {
  const auto over = std::make_shared<bool>(false);
  environment_.after(time, [this, over] {
    *over = true;
    pump();
  });
  return until([over] { return *over; });
}

Flow<> StepMember::at(Moment moment) {
  const auto sprung = falls(first_moment + static_cast<std::size_t>(moment), /*sent=*/true);
  if (halted_) {
    const std::function<bool()> never = [] { return false; };
    co_await until(never);
  }
  if (sprung == Trap::Does::stops) co_await pause({});
}

Flow<> StepMember::train() {
  co_await first();
  while (true) {
    if (leaves_) co_await leave_run();
    co_await step();
  }
}

// The process ends, and a later one has nothing to answer for.
Flow<> StepMember::end_run() {
  environment_.write("votes", {}, [] {});
  end(restart);
  const std::function<bool()> never = [] { return false; };
  co_await until(never);
}

// Takes the next group, or ends where the others are no majority.
Flow<std::unique_ptr<StepMember::Group>> StepMember::formed_group() {
  seek();
  const std::function<bool()> over = [this] { return formed_ != nullptr || is_minority_; };
  co_await until(over);
  if (!formed_) {
    checks_.note_ended();
    co_await end_run();
  }
  seeks_ = false;
  current_ = formed_->membership;
  co_return std::move(formed_);
}

Flow<> StepMember::first() {
  co_await next();
}

Flow<> StepMember::next() {
  while (true) {
    auto formed = co_await formed_group();
    try {
      co_await enter(std::move(formed));
      co_return;
    } catch (const Broken&) {
      drop_group();
    }
  }
}

StepMember::Part StepMember::own_model() const {
  Part part;
  part.model = std::make_shared<const Model>(model_);
  return part;
}

void StepMember::drop_group() {
  end_group(group_);
}

// All compare what they have; then those that are behind take over the model of one that is not.
Flow<> StepMember::enter(std::unique_ptr<Group> formed) {
  group_ = std::move(formed);
  const bool newcomer = group_->newcomer;
  const int rank = group_->rank;
  co_await at(Moment::comes);
  const auto told = give({.number = members::packed(held_.own(newcomer))});
  co_await at(Moment::tells);
  auto states = co_await all_of(told);
  std::vector<MemberState> all;
  for (const auto& [from, part] : states) all.push_back(members::unpacked(part.number));
  const members::SyncPlan plan = members::plan_sync(all);
  held_.enter(plan, rank);
  const bool behind = plan.behind[static_cast<std::size_t>(rank)];
  if (plan.any_behind() || plan.fresh) {
    const auto given = give(rank == plan.source ? own_model() : Part{});
    const auto models = co_await all_of(given, plan.source);
    const Model& source = *models.at(plan.source).model;
    if (!behind && !plan.fresh) checks_.enters(model_, source);
    if (behind && !plan.fresh) {
      const bool was_member =
          all[static_cast<std::size_t>(rank)].group_state == members::GroupState::member;
      checks_.takes_over(model_, was_member, made_since_taken_, source);
    }
    if (rank != plan.source) {
      const std::uint64_t optimizer = model_.optimizer;
      if (behind || plan.fresh) made_since_taken_ = 0;
      model_ = source;
      model_.optimizer = optimizer;
    }
    if (behind) co_await at(Moment::takes);
  }
  if (plan.newcomers) {
    const auto program = give({});
    co_await all_of(program, plan.source);
  }
  held_.complete(rank, group_->id);
  begin_at(static_cast<std::uint64_t>(plan.clock));
  if (behind) taken_over_ = true;
}

// As GroupSession::begin_at.
void StepMember::begin_at(std::uint64_t step) {
  begins_ = step;
  if (members::step_counts(group_->membership, view_, id()) == StepCounts::in_a_view)
    begin_in(view_.number);
}

// False: that view is no longer the latest one.
bool StepMember::begin_in(std::uint64_t view) {
  step_view_ = view;
  if (begins_ && !views().begin_at(view, *begins_)) return false;
  begins_.reset();
  return true;
}

std::vector<std::uint64_t> StepMember::give_all() {
  std::vector<std::uint64_t> operations;
  for (std::size_t i = 0; i < options_.buckets; ++i)
    operations.push_back(give({.gradients = gradients_}));
  operations.push_back(give({.number = static_cast<std::int64_t>(next_group_)}));
  return operations;
}

Flow<> StepMember::step() {
  taken_over_ = false;
  gradients_ = {derive_seed(id().nonce, {++batches_})};
  std::vector<std::uint64_t> operations;
  const auto buckets = static_cast<std::int64_t>(options_.buckets);
  for (std::int64_t i = 0; i < buckets; ++i) {
    co_await pause(options_.compute / buckets);
    operations.push_back(give({.gradients = gradients_}));
    co_await at(Moment::gives);
  }
  operations.push_back(give({.number = static_cast<std::int64_t>(next_group_)}));
  co_await end_exchange(std::move(operations));
  if (!taken_over_) co_await compare();
  if (taken_over_) co_return;
  make_step();
  co_await at(Moment::made);
  held_.made_step(held_.clock() + 1);
  co_await between_steps();
}

// If the exchange failed, the next group repeats it, unless one of its members has the result.
Flow<> StepMember::end_exchange(std::vector<std::uint64_t> operations) {
  const auto number = static_cast<std::uint64_t>(held_.clock()) + 1;
  bool spent = false;  // as StepRecord has it
  while (true) {
    const bool ended_well = co_await exchange(std::move(operations));
    if (ended_well) {
      spent = true;
      co_await at(Moment::has_all);
      if (co_await complete(number)) break;
      checks_.note_discarded();
    }
    drop_group();
    co_await next();
    if (taken_over_) co_return;
    checks_.note_repeated();
    if (spent) gradients_.clear();
    operations = give_all();
  }
  co_await at(Moment::counts);
}

// False: the group has broken. Otherwise .grad holds the sums.
Flow<bool> StepMember::exchange(std::vector<std::uint64_t> operations) {
  std::vector<std::vector<std::uint64_t>> sums;
  bool all_same = true;
  try {
    for (std::size_t i = 0; i + 1 < operations.size(); ++i) {
      const auto parts = co_await all_of(operations[i]);
      std::vector<std::uint64_t>& sum = sums.emplace_back();
      for (const auto& [rank, part] : parts)
        sum.insert(sum.end(), part.gradients.begin(), part.gradients.end());
      co_await at(Moment::has);
    }
    const auto notes = co_await all_of(operations.back());
    for (const auto& [rank, part] : notes)
      all_same = all_same && part.number == notes.begin()->second.number && part.number != 0;
  } catch (const Broken&) {
    co_return false;
  }
  checks_.sums(sums, group_->size());
  all_have_next_group_ = all_same;
  gradients_ = sums.front();
  co_return true;
}

// As GroupSession::complete.
Flow<bool> StepMember::complete(std::uint64_t number) {
  if (!begins_ && views().complete(step_view_, number)) co_return true;
  while (true) {
    const StepCounts counts = members::step_counts(group_->membership, view_, id());
    if (counts != StepCounts::in_a_view) co_return counts == StepCounts::yes;
    if (begin_in(view_.number) && views().complete(step_view_, number)) co_return true;
    if (!engine_->lacking(environment_.now()).empty()) co_return false;
    co_await pause(options_.patience / 20);
  }
}

// The optimizers of all, in the first step of a group.
Flow<> StepMember::compare() {
  if (!held_.is_to_compare()) co_return;
  try {
    const bool takes = held_.begin_comparison();
    const auto told = give({.number = 1});
    co_await at(Moment::compares);
    const auto words = co_await all_of(told);
    std::vector<std::int64_t> optimizers;
    for (const auto& [rank, part] : words) optimizers.push_back(part.number);
    const auto& plan = held_.plan();
    const auto owner = members::owner_of_optimizer(optimizers, plan.source, plan.behind);
    if (plan.hands_over_optimizer() && owner) {
      const auto given = give(group_->rank == *owner ? own_model() : Part{});
      const auto states = co_await all_of(given, *owner);
      if (takes) model_.optimizer = states.at(*owner).model->optimizer;
      co_await at(Moment::hands_over);
    }
    const auto compared = give({.number = static_cast<std::int64_t>(model_.optimizer)});
    const auto all = co_await all_of(compared);
    for (const auto& [rank, part] : all) {
      if (part.number != all.begin()->second.number)
        checks_.fail("members of a group have different optimizers");
    }
    held_.compared();
    const auto number = static_cast<std::uint64_t>(held_.clock()) + 1;
    views().note_state(number, derive_seed(group_->membership.view, {number}));
  } catch (const Broken&) {
    if (held_.is_broken()) taken_over_ = true;
  }
}

void StepMember::make_step() {
  const Model before = model_;
  std::uint64_t sum = 0;
  for (const std::uint64_t gradient : gradients_) {
    sum = derive_seed(sum, {gradient});
    model_.gradients.insert(gradient);
  }
  model_.optimizer = derive_seed(before.optimizer, {sum});
  model_.weights = derive_seed(before.weights, {model_.optimizer});
  model_.history.push_back(model_.weights);
  ++made_;
  ++made_since_taken_;
  checks_.steps(group_->id, before, gradients_, model_);
  if (options_.keeps_checkpoints && model_.history.size() % between_checkpoints == 0)
    environment_.write("checkpoint", model_, [] {});
}

Flow<> StepMember::between_steps() {
  if (held_.takes_program()) {
    try {
      const auto program = give({});
      co_await all_of(program, held_.plan().source);
    } catch (const Broken&) {
      co_return;  // the next exchange will find it
    }
  }
  if (std::exchange(all_have_next_group_, false)) {
    co_await grow();
  } else {
    next_group_ = formed_ ? formed_->membership.number() : 0;
  }
}

// Into the group that all have formed beside this one.
Flow<> StepMember::grow() {
  end_group(left_);
  left_ = std::move(group_);
  next_group_ = 0;
  bool enters = formed_ != nullptr;
  if (enters) {
    seeks_ = false;
    current_ = formed_->membership;
    try {
      co_await enter(std::move(formed_));
    } catch (const Broken&) {
      enters = false;
    }
  }
  if (enters) co_return;
  drop_group();
  co_await next();
}

// Between two steps, as CollectiveNode::leave.
Flow<> StepMember::leave_run() {
  drop_group();
  views().leave();
  // As long as others may need its vote.
  const TimePoint last = environment_.now() + 20 * options_.patience;
  const std::function<bool()> over = [this, last] {
    return engine().standing() != members::ViewEngine::Standing::member ||
           environment_.now() >= last;
  };
  co_await until(over);
  co_await end_run();
}

std::string StepMember::state() const {
  return id().name + ": view " + std::to_string(view_.number) + ", group of view " +
         std::to_string(group_ ? group_->membership.view : 0) + (seeks_ ? ", seeks" : "") +
         (attempt_ ? ", forms that of view " + std::to_string(attempt_->membership.view) : "") +
         (formed_ ? ", has formed another" : "") + ", step " + std::to_string(held_.clock()) +
         (awaited_ ? ", waits for operation " + std::to_string(awaited_->first) : "");
}

}  // namespace dpwa::world::testing
