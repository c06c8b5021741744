#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "dpwa/kvstore/shard_engine.h"
#include "dpwa/snapshot/finite.h"

namespace dpwa::kvstore {
namespace {

// The mean of no gradient, 0 / 0, in the type of the computation.
Bytes mean_of_nothing(DType dtype, std::size_t elements) {
  const DType wide = computed_in(dtype);
  Bytes mean(elements * size_of(wide));
  const auto fill = [&](auto nan) {
    for (std::size_t at = 0; at < mean.size(); at += sizeof nan)
      std::memcpy(&mean[at], &nan, sizeof nan);
  };
  if (wide == DType::float64) {
    fill(std::numeric_limits<double>::quiet_NaN());
  } else {
    fill(std::numeric_limits<float>::quiet_NaN());
  }
  return mean;
}

}  // namespace

ShardRules rules_of(KvstoreType type, std::uint64_t staleness, bool replicas) {
  ShardRules rules;
  rules.replicas = replicas;
  rules.staleness = type == KvstoreType::dist_async  ? unbounded_staleness
                    : type == KvstoreType::dist_sync ? 0
                                                     : staleness;
  rules.merged = merges(type, staleness);
  return rules;
}

std::uint64_t ShardEngine::next_of(const std::map<std::string, Advance>& clocks,
                                   const MemberId& worker) {
  const auto found = clocks.find(worker.name);
  return found != clocks.end() && found->second.worker == worker ? found->second.next : 0;
}

void ShardEngine::add_pending(Held& held, std::uint64_t round_before, std::vector<Waiter> waiters) {
  DPWA_INVARIANT(held.pending.empty() || held.pending.back().version < held.version,
                 "the backup stores versions in ascending order", held.version,
                 held.pending.back().version);
  held.pending.push_back({held.version, round_before, std::move(waiters)});
}

void ShardEngine::answer_once_stored(Entry& entry, const Waiter& waiter) {
  auto& pending = entry.second.pending;
  if (pending.empty()) return answer(entry, waiter);
  // Sent again while it waits, so it has one answer: the list stays short.
  for (Pending& each : pending) {
    std::erase_if(each.waiters, [&](const Waiter& other) {
      return other.worker == waiter.worker && other.kind == waiter.kind &&
             other.step == waiter.step;
    });
  }
  pending.back().waiters.push_back(waiter);
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
  Round& round = held.rounds[message.step];
  round.snapshot = std::max(round.snapshot, message.snapshot);
  round.begun_in = std::min(round.begun_in, message.begun_in);
  round.averages &= message.merge == Merge::mean && message.optimizer.empty();
  if (round.has(from)) {
    ++counts_.duplicates;
  } else if (!add(held, round, from, std::move(message))) {
    ++counts_.not_finite;
    round.absent.insert(from);
  }
  if (round.absent.contains(from)) {
    waiter.kind = AnswerKind::not_finite;
    answer(entry, waiter);
  } else {
    std::erase_if(round.waiters, [&](const Waiter& old) { return old.worker == waiter.worker; });
    round.waiters.push_back(waiter);
    if (!waiter.wants_value) {
      waiter.kind = AnswerKind::received;
      answer(entry, waiter);
    }
  }
  close_rounds(entry, now);
}

// A part that is not finite must not change the sum. If part and sum have the same type, this takes
// one pass, and a second one only for parts that are not finite.
bool ShardEngine::add_owned(const Held& held, Round& round, Push& message) {
  const DType dtype = held.spec.dtype;
  const Contribution part{message.compression, message.values, message.weight};
  const bool one_type = part.type == Compression::none && computed_in(dtype) == dtype;
  const auto own = [&] { return Bytes(held.elements * size_of(computed_in(dtype))); };
  if (round.sum.empty() && one_type && part.weight == 1) {
    if (!is_finite(dtype, message.values)) return false;
    round.sum = std::move(message.values);
    return true;
  }
  Bytes sum = own();
  if (round.sum.empty() || !one_type) {
    if (!add_up(dtype, sum, {&part, 1})) return false;
    if (round.sum.empty()) {
      round.sum = std::move(sum);
    } else {
      round.finite = add_up(dtype, round.sum, {&part, 1}, true);
    }
    return true;
  }
  const std::array both{Contribution{Compression::none, round.sum, 1}, part};
  const bool finite = add_up(dtype, sum, both);
  if (!finite && round.finite) {
    Bytes alone = own();
    if (!add_up(dtype, alone, {&part, 1})) return false;
  }
  round.finite = finite;
  round.sum = std::move(sum);
  return true;
}

// Returns false when the part is not finite. A lent part is checked when its round closes.
bool ShardEngine::add(const Held& held, Round& round, const MemberId& from, Push message) {
  const Contribution values{message.compression, message.content(), message.weight};
  if (!message.lent.empty()) {
    round.lent.push_back({from, values, message.loan});
  } else {
    if (!add_owned(held, round, message)) return false;
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

// The step that this worker pushes next, by what this slice has received.
std::uint64_t ShardEngine::progress(const Held& held, const WorkerEntry& worker) const {
  std::uint64_t next = std::max(worker.first_step, next_of(held.clocks, worker.id));
  if (rules_.merged) next = std::max(next, held.round);
  for (const auto& [step, round] : held.rounds) {
    if (round.has(worker.id)) next = std::max(next, step + 1);
  }
  return next;
}

// The steps of the worker so far. A worker that has pushed nothing begins where the others are:
// with the open round, or with the step of the slowest worker.
std::uint64_t ShardEngine::step_for(const Held& held, const std::string& worker) const {
  const WorkerEntry* const self = epoch_.worker(worker);
  if (self == nullptr) return 0;
  if (rules_.merged) return std::max(progress(held, *self), first_round(held, *self));
  std::uint64_t lowest = unbounded_staleness;
  for (const WorkerEntry& each : epoch_.workers) {
    const std::uint64_t next = next_of(held.clocks, each.id);
    if (next > 0) lowest = std::min(lowest, next);
  }
  const std::uint64_t own = std::max(self->first_step, next_of(held.clocks, self->id));
  return lowest == unbounded_staleness ? own : std::max(own, lowest);
}

void ShardEngine::close_rounds(Entry& entry, TimePoint now) {
  Held& held = entry.second;
  if (!rules_.merged || epoch_.workers.empty()) return;
  while (!held.rounds.empty()) {
    const std::uint64_t step = held.rounds.begin()->first;
    const Round& round = held.rounds.begin()->second;
    const bool waits = std::ranges::any_of(epoch_.workers, [&](const WorkerEntry& worker) {
      return takes_part(round, worker) && progress(held, worker) <= step;
    });
    if (waits) break;
    close(entry, step, now);
  }
  // Skips steps that no worker pushes because all workers joined later.
  std::uint64_t target = unbounded_staleness;
  for (const WorkerEntry& worker : epoch_.workers) {
    target = std::min(target, progress(held, worker));
  }
  held.round = std::max(held.round, target);
  serve_pulls(entry);
}

// Called once every worker that takes part in the round has pushed this step or a later one.
void ShardEngine::close(Entry& entry, std::uint64_t step, TimePoint now) {
  Held& held = entry.second;
  DPWA_INVARIANT(step >= held.round, "rounds are closed in order", step, held.round);
  held.round = step;
  auto node = held.rounds.extract(step);
  DPWA_INVARIANT(!node.empty(), "a round that is closed is open", step);
  Round& round = node.mapped();
  Forward change;
  change.round = step + 1;
  change.snapshot = round.snapshot;
  change.optimizer = std::move(round.optimizer);
  change.gradient = gradient_of(held, round, change.scale);
  // A value that is a mean must not stay that of an earlier round: its workers would apply it
  // again.
  if (change.gradient.empty() && round.averages && change.optimizer.empty()) {
    change.gradient = mean_of_nothing(held.spec.dtype, held.elements);
    change.scale = 1;
  }
  // The others have had an answer, and their pulls bring the rest.
  std::erase_if(round.waiters, [&](const Waiter& waiter) {
    if (waiter.wants_value) return false;
    const WorkerEntry* const worker = epoch_.worker(waiter.worker);
    return waiter.kind == AnswerKind::counted || worker == nullptr || !round.has(worker->id);
  });
  for (const MemberId& worker : round.counted) change.advances.push_back({worker, step + 1});
  for (const MemberId& worker : round.absent) change.advances.push_back({worker, step + 1});
  update(entry, std::move(change), std::move(round.waiters), now);
}

// The sum shows whether all lent parts are finite, so they are checked one by one only when it is
// not.
Bytes ShardEngine::gradient_of(const Held& held, Round& round, double& scale) {
  const DType dtype = held.spec.dtype;
  const std::size_t bytes = held.elements * size_of(computed_in(dtype));
  Bytes total;
  DPWA_INVARIANT(round.weight >= 0, "a sum of weights is not negative", round.weight);
  double weight = round.weight;
  // A mean of nothing: no worker had a gradient.
  const auto is_nothing = [&] { return round.merge == Merge::mean && weight == 0; };
  if (round.lent.empty() && !round.counted.empty()) {
    scale = round.merge == Merge::mean && weight > 0 ? 1 / weight : 1;
    if (!round.finite) leave_out_all(round);
    return round.finite && !is_nothing() ? std::move(round.sum) : Bytes{};
  }
  const auto add_lent = [&] {
    std::vector<Contribution> parts;
    weight = round.weight;
    for (const Lent& part : round.lent) {
      parts.push_back(part.values);
      weight += part.values.weight;
    }
    scale = round.merge == Merge::mean && weight > 0 ? 1 / weight : 1;
    if (!round.sum.empty()) total = copy_of(round.sum);
    total.resize(bytes);
    return add_up(dtype, total, parts, !round.sum.empty());
  };
  const auto torn = [](const Lent& part) { return !part.loan.intact(); };
  const auto not_finite = [&](const Lent& part) {
    Bytes alone(bytes);
    return !add_up(dtype, alone, {&part.values, 1});
  };
  // Once the parts have been looked at and are finite, but their sum is not: no update.
  bool looked = false;
  std::vector<Bytes> copies;
  while (!round.counted.empty()) {
    const bool finite = add_lent();
    if (std::ranges::any_of(round.lent, torn)) {
      leave_out(round, torn);
      looked = false;
    } else if (finite) {
      return is_nothing() ? Bytes{} : std::move(total);
    } else if (looked) {
      leave_out_all(round);
    } else {
      // Their owners may write to them meanwhile.
      for (Lent& part : round.lent)
        part.values.bytes = copies.emplace_back(dpwa::copy_of(part.values.bytes));
      leave_out(round, not_finite);
      looked = true;
    }
  }
  return {};
}

void ShardEngine::leave_out(Round& round, const std::function<bool(const Lent&)>& which) {
  std::erase_if(round.lent, [&](const Lent& part) {
    if (!which(part)) return false;
    ++counts_.not_finite;
    const std::size_t counted = round.counted.erase(part.worker);
    DPWA_INVARIANT(counted == 1, "a part that is left out was counted", part.worker.name);
    round.absent.insert(part.worker);
    for (Waiter& waiter : round.waiters) {
      if (waiter.worker == part.worker.name) waiter.kind = AnswerKind::not_finite;
    }
    return true;
  });
}

// The parts are finite, and their sum is not.
void ShardEngine::leave_out_all(Round& round) {
  counts_.not_finite += round.counted.size();
  round.absent.merge(round.counted);
  for (Waiter& waiter : round.waiters) waiter.kind = AnswerKind::not_finite;
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
  if (finite && message.loan.intact()) {
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
  if (change.snapshot > held.snapshot) begin_capture(held, change.snapshot);
  apply(held, change, must_store(held) || held.capture ? nullptr : &change.gradient);
  capture(entry, change);
  ++counts_.updates;
  if (!must_store(held)) {
    for (const Advance& each : change.advances) advance(held.acknowledged, each);
    for (const Waiter& waiter : waiters) answer(entry, waiter);
    serve_pulls(entry);
    return;
  }
  add_pending(held, round_before, std::move(waiters));
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

std::uint64_t ShardEngine::acknowledged_clock(const Held& held, std::uint64_t round) const {
  if (rules_.merged) return held.pending.empty() ? round : held.pending.front().round_before;
  std::uint64_t lowest = unbounded_staleness;
  for (const WorkerEntry& worker : epoch_.workers) {
    lowest = std::min(lowest, awaited_step(held, worker).value_or(unbounded_staleness));
  }
  return lowest;
}

void ShardEngine::serve_pulls(Entry& entry) {
  auto& [id, held] = entry;
  const std::uint64_t done = acknowledged_clock(held, held.round);
  std::erase_if(held.pulls, [&](const PullWaiter& pull) {
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
