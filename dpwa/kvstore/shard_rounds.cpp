#include <algorithm>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {
ShardRules rules_of(StoreType type, std::uint64_t staleness, bool replicas) {
  ShardRules rules;
  rules.replicas = replicas;
  rules.staleness = type == StoreType::dist_async  ? unbounded_staleness
                    : type == StoreType::dist_sync ? 0
                                                   : staleness;
  rules.merged = rules.staleness == 0;
  return rules;
}

std::uint64_t ShardEngine::next_of(const std::map<std::string, Advance>& clocks,
                                   const MemberId& worker) {
  const auto found = clocks.find(worker.name);
  return found != clocks.end() && found->second.worker == worker ? found->second.next : 0;
}

void ShardEngine::answer_duplicate(Entry& entry, const Waiter& waiter) {
  ++counts_.duplicates;
  auto& pending = entry.second.pending;
  if (pending.empty()) return answer(entry, waiter);
  pending.back().waiters.push_back(waiter);
}

void ShardEngine::push_merged(Entry& entry, const MemberId& from, std::uint64_t tag, Push message,
                              TimePoint now) {
  Held& held = entry.second;
  Waiter waiter{from.name, tag, AnswerKind::counted, message.step, message.wants_value};
  if (message.step < next_of(held.clocks, from)) return answer_duplicate(entry, waiter);
  if (message.step < held.round) {
    ++counts_.late;
    waiter.kind = AnswerKind::late;
    return answer(entry, waiter);
  }
  Round& round = held.rounds[message.step];
  round.snapshot = std::max(round.snapshot, message.snapshot);
  if (round.has(from)) {
    ++counts_.duplicates;
  } else if (!add(held, round, from, std::move(message))) {
    ++counts_.not_finite;
    round.absent.insert(from);
  }
  if (round.absent.contains(from)) {
    waiter.kind = AnswerKind::not_finite;
    answer(entry, waiter);
  } else if (waiter.wants_value) {
    std::erase_if(round.waiters, [&](const Waiter& old) { return old.worker == waiter.worker; });
    round.waiters.push_back(waiter);
  } else {
    waiter.kind = AnswerKind::received;
    answer(entry, waiter);
  }
  close_rounds(entry, now);
}

// False: it is not finite. A lent one is judged with its round.
bool ShardEngine::add(const Held& held, Round& round, const MemberId& from, Push message) {
  const Contribution values{message.compression, message.content(), message.weight};
  if (!message.lent.empty()) {
    round.lent.push_back({from, values});
  } else {
    // Into memory of its own first: one that is not finite must leave the sum as it is.
    Bytes sum(held.elements * size_of(computed_in(held.spec.dtype)));
    if (!add_up(held.spec.dtype, sum, {&values, 1})) return false;
    if (round.sum.empty()) {
      round.sum = std::move(sum);
    } else {
      add_up(held.spec.dtype, round.sum, {&values, 1}, true);
    }
    round.weight += message.weight;
  }
  if (round.leader.empty() || from.name < round.leader) {
    round.leader = from.name;
    round.merge = message.merge;
    round.optimizer = std::move(message.optimizer);
  }
  round.counted.insert(from);
  return true;
}

// The step that this worker pushes next, as far as this slice knows.
std::uint64_t ShardEngine::progress(const Held& held, const WorkerEntry& worker) const {
  std::uint64_t next = std::max(worker.first_step, next_of(held.clocks, worker.id));
  if (rules_.merged) next = std::max(next, held.round);
  for (const auto& [step, round] : held.rounds) {
    if (round.has(worker.id)) next = std::max(next, step + 1);
  }
  return next;
}

void ShardEngine::close_rounds(Entry& entry, TimePoint now) {
  Held& held = entry.second;
  if (!rules_.merged || epoch_.workers.empty()) return;
  std::uint64_t target = unbounded_staleness;
  for (const WorkerEntry& worker : epoch_.workers) {
    target = std::min(target, progress(held, worker));
  }
  while (!held.rounds.empty() && held.rounds.begin()->first < target) {
    close(entry, held.rounds.begin()->first, now);
  }
  // Steps that nobody pushes: all workers came later.
  held.round = std::max(held.round, target);
  serve_pulls(entry);
}

// Every live worker has pushed this step, or is past it.
void ShardEngine::close(Entry& entry, std::uint64_t step, TimePoint now) {
  Held& held = entry.second;
  held.round = std::max(held.round, step);
  auto node = held.rounds.extract(step);
  Round& round = node.mapped();
  Forward change;
  change.round = step + 1;
  change.snapshot = round.snapshot;
  change.optimizer = std::move(round.optimizer);
  change.gradient = gradient_of(held, round, change.scale);
  for (const MemberId& worker : round.counted) change.advances.push_back({worker, step + 1});
  for (const MemberId& worker : round.absent) change.advances.push_back({worker, step + 1});
  update(entry, std::move(change), std::move(round.waiters), now);
}

// Whether a sum is finite is known with the sum, so lent parts are looked at one by one only when
// it is not.
Bytes ShardEngine::gradient_of(const Held& held, Round& round, double& scale) {
  const DType dtype = held.spec.dtype;
  const std::size_t bytes = held.elements * size_of(computed_in(dtype));
  Bytes total;
  double weight = 0;
  const auto add_lent = [&] {
    std::vector<Contribution> parts;
    weight = round.weight;
    for (const Lent& part : round.lent) {
      parts.push_back(part.values);
      weight += part.values.weight;
    }
    scale = round.merge == Merge::mean && weight > 0 ? 1 / weight : 1;
    total = round.sum;
    total.resize(bytes);
    return add_up(dtype, total, parts, true);
  };
  // A mean over nothing: no worker had a gradient.
  const auto or_none = [&] {
    return round.merge == Merge::mean && weight == 0 ? Bytes{} : std::move(total);
  };
  if (round.counted.empty()) return {};
  if (add_lent()) return or_none();
  std::erase_if(round.lent, [&](const Lent& part) {
    Bytes alone(bytes);
    if (add_up(dtype, alone, {&part.values, 1})) return false;
    ++counts_.not_finite;
    round.counted.erase(part.worker);
    round.absent.insert(part.worker);
    for (Waiter& waiter : round.waiters) {
      if (waiter.worker == part.worker.name) waiter.kind = AnswerKind::not_finite;
    }
    return true;
  });
  // Parts that are finite, and their sum is not: no update.
  return !round.counted.empty() && add_lent() ? or_none() : Bytes{};
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
  if (add_up(held.spec.dtype, change.gradient, {&values, 1})) {
    change.optimizer = message.optimizer;
  } else {
    ++counts_.not_finite;
    change.gradient.clear();
    waiter.kind = AnswerKind::not_finite;
  }
  update(entry, std::move(change), {waiter}, now);
}

void ShardEngine::update(Entry& entry, Forward change, std::vector<Waiter> waiters, TimePoint now) {
  auto& [id, held] = entry;
  const std::uint64_t round_before = held.round;
  change.epoch = epoch_.number;
  change.slice = id;
  change.version = held.version + 1;
  if (change.snapshot > held.snapshot) begin_capture(held, change.snapshot);
  apply(held, change);
  capture(entry, change);
  ++counts_.updates;
  if (!must_store(held)) {
    for (const Advance& each : change.advances) advance(held.acknowledged, each);
    for (const Waiter& waiter : waiters) answer(entry, waiter);
    serve_pulls(entry);
    return;
  }
  held.pending.push_back({held.version, round_before, std::move(waiters)});
  if (held.backup == Backup::synced) {
    if (held.pending.size() == 1) held.asked = now;
    send(epoch_.servers[*backup_of(held.home)].id.name, 0, std::move(change));
  } else if (held.backup == Backup::unsynced) {
    begin_sync(entry, now);
  }
}

void ShardEngine::apply(Held& held, const Forward& change) {
  held.SliceState::apply(held.spec.dtype, change);
  for (const Advance& each : change.advances) clock_ = std::max(clock_, each.next);
}

std::uint64_t ShardEngine::acknowledged_clock(const Held& held, std::uint64_t round) const {
  if (rules_.merged) return held.pending.empty() ? round : held.pending.front().round_before;
  std::uint64_t lowest = unbounded_staleness;
  for (const WorkerEntry& worker : epoch_.workers) {
    lowest = std::min(lowest, std::max(worker.first_step, next_of(held.acknowledged, worker.id)));
  }
  return lowest;
}

void ShardEngine::serve_pulls(Entry& entry) {
  auto& [id, held] = entry;
  const std::uint64_t done = acknowledged_clock(held, held.round);
  std::erase_if(held.pulls, [&](const PullWaiter& pull) {
    // All pushes of steps below this have to be in the value.
    const std::uint64_t needed = pull.clock > rules_.staleness ? pull.clock - rules_.staleness : 0;
    if (done < needed) return false;
    const bool unchanged = pull.known_version == held.version || pull.known_version == any_version;
    answer(entry, {pull.worker.name, pull.tag,
                   unchanged ? AnswerKind::unchanged : AnswerKind::value, pull.clock, !unchanged});
    return true;
  });
}

}  // namespace dpwa::kvstore
