#include "test/world/step_member.h"

#include <algorithm>
#include <utility>

#include "dpwa/base/random.h"

namespace dpwa::world::testing {

using members::Entry;
using members::GroupMembers;
using members::ProcessId;

namespace {

constexpr Duration restart = std::chrono::milliseconds(50);
constexpr int looks = 4;                 // in each patience
constexpr int silent_looks = 6;          // without a word: suspected
constexpr int limit_of_an_attempt = 20;  // patiences
constexpr std::uint64_t kept_operations = 32;

members::GroupEngineOptions engine_options(const StepOptions& options) {
  members::GroupEngineOptions group;
  group.view = {.self = {}, .names = options.names, .patience = options.patience};
  group.beat = options.patience / looks;
  group.lost_after = silent_looks * group.beat;
  group.judges_at_rest = true;
  return group;
}

std::string key_of(int rank) {
  return "invitation/" + std::to_string(rank);
}

}  // namespace

StepMember::StepMember(Environment& environment, const StepOptions& options, StepChecks& checks,
                       Traps& traps)
    : GroupProcess(environment, traps, engine_options(options)),
      options_(options),
      checks_(checks) {
  const std::any kept = environment_.read("checkpoint");
  if (kept.has_value()) {
    model_ = std::any_cast<Model>(kept);
    held_.set_clock(static_cast<double>(model_.history.size()));
  }
  training_ = train();
}

void StepMember::heard(const ProcessId& from, const members::GroupMessage& message) {
  const auto* const entry = std::get_if<Entry>(&message);
  if (entry != nullptr && engine_->counts(from)) entries_.receive(from, *entry);
}

// A run whose majority has left in order, or whose members have all ended, is over, though one that
// they did not hear lives. The next one begins with the states that its members have.
void StepMember::installed(const members::View& view) {
  if (!view.open() && std::exchange(run_, view.run) != view.run) made_since_taken_ = 0;
  view_ = view;
}

void StepMember::ticked() {
  if (engine().standing() == members::ViewEngine::Standing::left) return end(restart);
  if (!std::exchange(begun_, true)) {
    runs_ = true;
    training_.begin();
    runs_ = false;
  }
  is_minority_ = seeks_ && !engine_->lacking(environment_.now()).empty();
  engine_->set_waiting(awaited_.has_value(), environment_.now());
  watch();
  ask_for_parts();
  if (attempt_) {
    for (const Entry& entry : entries_.own()) {
      for (const std::string& name : options_.names) {
        if (name != id().name) tell_message(name, entry);
      }
    }
    for (std::size_t rank = 0; rank < attempt_->size(); ++rank) {
      tell_rank(*attempt_, static_cast<int>(rank),
                [group = attempt_->id, from = id().name, own = attempt_->rank](StepMember& to) {
                  to.take_greeting(group, from, own, /*answers=*/true);
                });
    }
  }
}

// The last thing in each event: the thread that forms groups looks, then the training thread goes
// on where it can.
void StepMember::pumped() {
  if (runs_) return;
  look_for_group();
  runs_ = true;
  while (waiter_ && !halted_ && condition_()) std::exchange(waiter_, {}).resume();
  runs_ = false;
}

// --- groups

StepMember::Group* StepMember::find(std::uint64_t id) {
  for (const auto* group : {&attempt_, &formed_, &group_, &left_}) {
    if (*group && (*group)->id == id) return group->get();
  }
  return nullptr;
}

template <class Action>
void StepMember::tell_rank(const Group& group, int rank, Action action) {
  if (rank == group.rank) return;
  const ProcessId& to = group.membership.members[static_cast<std::size_t>(rank)].id;
  tell<StepMember>(
      to.name,
      [nonce = to.nonce, action](StepMember& receiver) {
        if (receiver.id().nonce == nonce) action(receiver);
      },
      [this, id = group.id] { note_broken(id); });
}

void StepMember::break_group(Group& group) {
  if (std::exchange(group.broken, true)) return;
  for (std::size_t rank = 0; rank < group.size(); ++rank)
    tell_rank(group, static_cast<int>(rank),
              [id = group.id](StepMember& to) { to.note_broken(id); });
}

void StepMember::end_group(std::unique_ptr<Group>& group) {
  if (!group) return;
  break_group(*group);
  ended_.insert(group->id);
  group.reset();
}

void StepMember::note_broken(std::uint64_t id) {
  if (left_ && left_->id == id) return;
  if (Group* const group = find(id)) break_group(*group);
}

void StepMember::seek() {
  seeks_ = true;
  is_minority_ = false;
  end_group(formed_);
}

void StepMember::look_for_group() {
  advance_attempt();
  engine_->set_seeking(seeks_, environment_.now());
  drop_stale();
  std::optional<GroupMembers> wanted;
  if (!formed_)
    wanted =
        members::wanted_group(view_, id(), options_.names, {.seeks = seeks_, .current = current_});
  const bool gone = wanted && !members::gone_member(*wanted, engine_->peers()).empty();
  if (attempt_ && (!wanted || gone || attempt_->membership != *wanted)) end_group(attempt_);
  if (wanted && !gone && !attempt_) pursue(*wanted);
}

void StepMember::drop_stale() {
  if (formed_ && (formed_->broken || members::is_left_behind(formed_->membership, view_)))
    end_group(formed_);
  if (seeks_ || view_.number <= current_.view || !current_.rank_outside(view_)) return;
  if (group_) break_group(*group_);
}

void StepMember::pursue(const GroupMembers& wanted) {
  const TimePoint now = environment_.now();
  if (wanted.number() <= used_) {
    if (now - asked_ < options_.patience) return;
    asked_ = now;
    return views().renew();
  }
  const std::uint64_t name = derive_seed(view_.digest(), {wanted.number()});
  if (!view_.votes(id()) && !entries_.others_have_come(name)) return;
  begin_attempt(wanted, name);
}

void StepMember::begin_attempt(const GroupMembers& members, std::uint64_t name) {
  const auto place = std::ranges::find(options_.names, id().name) - options_.names.begin();
  attempt_ = std::make_unique<Group>();
  attempt_->id = name;
  attempt_->membership = members;
  attempt_->rank = *members.rank_of(static_cast<std::size_t>(place));
  attempt_->newcomer = view_.member(id())->joining || current_.view == 0;
  attempt_->begun = environment_.now();
  used_ = members.number();
  checks_.forms(name, members);
  const Entry entry{name, key_of(attempt_->rank), {1}};
  entries_.put(entry);
  for (const std::string& each : options_.names) {
    if (each != id().name) tell_message(each, entry);
  }
}

// All members have to come, and connect to one another.
void StepMember::advance_attempt() {
  if (!attempt_) return;
  if (attempt_->broken ||
      environment_.now() - attempt_->begun > limit_of_an_attempt * options_.patience)
    return end_group(attempt_);
  for (std::size_t rank = 0; rank < attempt_->size(); ++rank) {
    if (static_cast<int>(rank) != attempt_->rank &&
        (entries_.find(attempt_->id, key_of(static_cast<int>(rank))) == nullptr ||
         !attempt_->met.contains(static_cast<int>(rank))))
      return;
  }
  formed_ = std::move(attempt_);
}

void StepMember::take_greeting(std::uint64_t name, const std::string& from, int rank,
                               bool answers) {
  Group* const group = find(name);
  if (group == nullptr) {
    if (ended_.contains(name)) refuse(name, from);
    return;
  }
  group->met.insert(rank);
  if (answers)
    tell_rank(*group, rank, [name, own = id().name, from = group->rank](StepMember& to) {
      to.take_greeting(name, own, from, /*answers=*/false);
    });
}

// As by a connection that is closed.
void StepMember::refuse(std::uint64_t name, const std::string& to) {
  tell<StepMember>(to, [name](StepMember& receiver) { receiver.note_broken(name); });
}

// --- operations

std::uint64_t StepMember::give(Part part) {
  if (!group_ || group_->broken) return 0;
  const std::uint64_t operation = ++group_->operations;
  group_->parts[operation][group_->rank] = std::move(part);
  // Nobody is so far behind.
  group_->parts.erase(group_->parts.begin(),
                      group_->parts.lower_bound(operation - std::min(operation, kept_operations)));
  for (std::size_t rank = 0; rank < group_->size(); ++rank)
    give_to(*group_, static_cast<int>(rank), operation);
  return operation;
}

void StepMember::give_to(const Group& group, int rank, std::uint64_t operation) {
  const Part& part = group.parts.at(operation).at(group.rank);
  tell_rank(group, rank, [name = group.id, from = group.rank, operation, part](StepMember& to) {
    to.take_part(name, from, operation, part);
  });
}

void StepMember::take_part(std::uint64_t name, int rank, std::uint64_t operation,
                           const Part& part) {
  Group* const group = find(name);
  if (group != nullptr && !group->broken) group->parts[operation].emplace(rank, part);
}

// What was lost on the way comes again; a member that has gone answers that it has.
void StepMember::ask_for_parts() {
  if (!awaited_ || !group_ || group_->broken) return;
  const auto [operation, root] = *awaited_;
  for (std::size_t place = 0; place < group_->size(); ++place) {
    const int rank = static_cast<int>(place);
    if ((root && rank != *root) || group_->parts[operation].contains(rank)) continue;
    const ProcessId& member = group_->membership.members[place].id;
    tell<StepMember>(
        member.name,
        [name = group_->id, nonce = member.nonce, from = id().name, rank = group_->rank,
         operation = operation](StepMember& to) { to.answer(name, nonce, from, rank, operation); },
        [this, name = group_->id] { note_broken(name); });
  }
}

void StepMember::answer(std::uint64_t name, std::uint64_t nonce, const std::string& from, int rank,
                        std::uint64_t operation) {
  Group* const group = find(name);
  if (group != nullptr && !group->broken) {
    if (group->parts[operation].contains(group->rank)) give_to(*group, rank, operation);
  } else if (id().nonce != nonce || group != nullptr || ended_.contains(name)) {
    refuse(name, from);
  }
}

// A member that the others wait for, and that is lost.
void StepMember::watch() {
  if (!awaited_ || !group_ || group_->broken) return;
  for (const GroupMembers::Member& member : group_->membership.members) {
    const auto peer = engine_->peers().find(member.id.name);
    if (peer == engine_->peers().end()) continue;
    if (peer->second.why_gone(member.id).empty()) continue;
    engine_->give_up(member.id.name);
    return break_group(*group_);
  }
}

Flow<std::map<int, StepMember::Part>> StepMember::all_of(std::uint64_t operation,
                                                         std::optional<int> root) {
  if (operation == 0) throw Broken{};
  const auto has = [this, operation, root] {
    const auto& parts = group_->parts[operation];
    return root ? parts.contains(*root) : parts.size() == group_->size();
  };
  awaited_ = {operation, root};
  awaits_since_ = environment_.now();
  const std::function<bool()> over = [this, has] { return group_->broken || has(); };
  co_await until(over);
  awaited_.reset();
  if (!has()) throw Broken{};
  co_return group_->parts[operation];
}

}  // namespace dpwa::world::testing
