#include <algorithm>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {

void ShardEngine::answer_once_stored(Entry& entry, const Waiter& waiter) {
  PendingUpdates& pending = entry.second.pending;
  pending.empty() ? answer(entry, waiter) : pending.wait(waiter);
}

void ShardEngine::answer_duplicate(Entry& entry, const Waiter& waiter) {
  ++counts_.duplicates;
  answer_once_stored(entry, waiter);
}

void ShardEngine::push_merged(Entry& entry, const MemberId& from, std::uint64_t tag, Push message,
                              TimePoint now) {
  Held& held = entry.second;
  Waiter waiter{from.name, tag, AnswerKind::counted, message.step, message.wants_value};
  if (message.step < next_of(held.clocks, from)) return answer_duplicate(entry, waiter);
  if (message.step < held.round) {
    ++counts_.dropped;
    waiter.kind = AnswerKind::dropped;
    return answer(entry, waiter);
  }
  if (!held.rounds.contains(message.step)) {
    const auto open =
        std::ranges::count_if(held.rounds, [&](const auto& each) { return each.second.has(from); });
    if (static_cast<std::size_t>(open) >= most_open_rounds) {
      return explain_refusal(from.name, tag, entry.first, AnswerKind::wrong_spec, message.step,
                             std::to_string(open) + " earlier pushes of it wait for other workers");
    }
  }
  Round& round = held.rounds.try_emplace(message.step, held.shape()).first->second;
  if (round.has(from)) {
    ++counts_.duplicates;
  } else if (!round.add(from, std::move(message))) {
    ++counts_.not_finite;
  }
  if (round.is_absent(from)) {
    waiter.kind = AnswerKind::not_finite;
    answer(entry, waiter);
  } else {
    round.wait(waiter);
    if (!waiter.wants_value) {
      waiter.kind = AnswerKind::received;
      answer(entry, waiter);
    }
  }
  close_rounds(entry, now);
}

bool ShardEngine::may_begin(const std::string& worker) const {
  const WorkerEntry* const self = epoch_.worker(worker);
  return !rules_.merged || self == nullptr || comers_.may_begin(epoch_, *self);
}

void ShardEngine::passed_epoch(const MemberId& worker, std::uint64_t number) {
  if (epoch_.has(worker) && comers_.passed(worker, number)) answer_newcomers();
}

void ShardEngine::answer_newcomers() {
  // Those that have to go on waiting come back into it.
  for (const auto& [at, waiter] : std::exchange(newcomers_, {}))
    answer_once_stored(entry_of(at.first), waiter);
  for (Entry& entry : slices_) {
    if (!entry.second.pulls.empty()) serve_pulls(entry);
  }
}

void ShardEngine::close_rounds(Entry& entry, TimePoint now) {
  Held& held = entry.second;
  if (!rules_.merged || epoch_.workers.empty()) return;
  while (!held.rounds.empty()) {
    const std::uint64_t step = held.rounds.begin()->first;
    const Round& round = held.rounds.begin()->second;
    const bool waits = std::ranges::any_of(epoch_.workers, [&](const WorkerEntry& worker) {
      return takes_part(round, worker) && held.progress(worker, true) <= step;
    });
    if (waits) break;
    close(entry, step, now);
  }
  // Skips steps that no worker pushes because all workers joined later.
  std::uint64_t target = unbounded_staleness;
  for (const WorkerEntry& worker : epoch_.workers) {
    target = std::min(target, held.progress(worker, true));
  }
  held.round = std::max(held.round, target);
  clock_ = std::max(clock_, held.round);  // those that come begin no earlier
  serve_pulls(entry);
}

// Called once every worker that takes part in the round has pushed this step or a later one.
void ShardEngine::close(Entry& entry, std::uint64_t step, TimePoint now) {
  Held& held = entry.second;
  DPWA_INVARIANT(step >= held.round, "rounds are closed in order", step, held.round);
  held.round = step;
  auto node = held.rounds.extract(step);
  DPWA_INVARIANT(!node.empty(), "a round that is closed is open", step);
  auto [change, waiters, refused] = node.mapped().close(step);
  counts_.not_finite += refused;
  // The others have had an answer, and their pulls bring the rest.
  std::erase_if(waiters, [&](const Waiter& waiter) {
    if (waiter.wants_value) return false;
    const WorkerEntry* const worker = epoch_.worker(waiter.worker);
    return waiter.kind == AnswerKind::counted || worker == nullptr ||
           std::ranges::find(change.advances, worker->id, &Advance::worker) ==
               change.advances.end();
  });
  update(entry, std::move(change), std::move(waiters), now);
}

void ShardEngine::push_single(Entry& entry, const MemberId& from, std::uint64_t tag,
                              const Push& message, TimePoint now) {
  Held& held = entry.second;
  Waiter waiter{from.name, tag, AnswerKind::counted, message.step, message.wants_value};
  if (message.step < next_of(held.clocks, from)) return answer_duplicate(entry, waiter);
  Forward change;
  change.advances.push_back({from, message.step + 1});
  change.snapshot = message.snapshot;
  const double weight = message.merge == Merge::mean ? 1 : message.weight;
  const Contribution values{message.compression, message.content(), weight};
  change.gradient.resize(held.elements * size_of(computed_in(held.spec.dtype)));
  const bool finite = add_up(held.spec.dtype, change.gradient, {&values, 1});
  if (finite && message.lent.intact()) {
    change.optimizer = message.optimizer;
    // As a mean over pushes without weight.
    if (message.merge == Merge::mean && message.weight == 0) change.gradient.clear();
  } else {
    ++counts_.not_finite;
    change.gradient.clear();
    waiter.kind = AnswerKind::not_finite;
  }
  update(entry, std::move(change), {waiter}, now);
}

void ShardEngine::update(Entry& entry, Forward change, std::vector<Waiter> waiters, TimePoint now) {
  auto& [id, held] = entry;
  for (const Advance& each : change.advances) {
    DPWA_INVARIANT(next_of(held.clocks, each.worker) < each.next, "a push is counted once",
                   each.worker.name, each.next, next_of(held.clocks, each.worker), held.version);
  }
  const std::uint64_t round_before = held.round;
  change.epoch = epoch_.number;
  change.slice = id;
  change.version = held.version + 1;
  if (change.snapshot > held.snapshot) held.capture.begin(held, change.snapshot);
  const bool keeps = must_store(held) || held.capture.is_under_way();
  apply(held, change, keeps ? nullptr : &change.gradient);
  held.capture.note(held.spec.dtype, change, rules_.merged);
  end_capture(entry);
  ++counts_.updates;
  if (!must_store(held)) {
    for (const Advance& each : change.advances) advance(held.acknowledged, each);
    for (const Waiter& waiter : waiters) answer(entry, waiter);
    serve_pulls(entry);
    return;
  }
  held.pending.add(held.version, round_before, std::move(waiters));
  if (held.backup == Backup::synced) {
    if (held.pending.size() == 1) held.asked = now;
    send(name_of_backup(held), 0, std::move(change));
  } else if (held.backup == Backup::unsynced) {
    begin_sync(entry, now);
  }
}

void ShardEngine::apply(Held& held, const Forward& change, Bytes* spare) {
  DPWA_INVARIANT(change.version == held.version + 1, "a version follows each change",
                 change.version, held.version);
  held.SliceState::apply(held.spec.dtype, change, spare);
  count_bytes(held);
  for (const Advance& each : change.advances) clock_ = std::max(clock_, each.next);
}

void ShardEngine::serve_pulls(Entry& entry) {
  auto& [id, held] = entry;
  const std::uint64_t done = held.acknowledged_clock(epoch_, rules_.merged);
  std::erase_if(held.pulls, [&](const Held::PullWaiter& pull) {
    // The value has to include all pushes of steps below this.
    const std::uint64_t needed = pull.clock > rules_.staleness ? pull.clock - rules_.staleness : 0;
    if (done < needed || !may_begin(pull.worker.name)) return false;
    const bool unchanged = pull.known_version == held.version || pull.known_version == any_version;
    answer(entry, {pull.worker.name, pull.tag,
                   unchanged ? AnswerKind::unchanged : AnswerKind::value, pull.clock, !unchanged});
    return true;
  });
}

}  // namespace dpwa::kvstore
