#include "dpwa/kvstore/shard_engine.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dpwa::kvstore {

ShardEngine::ShardEngine(const ShardRules& rules, std::string name)
    : rules_(rules), name_(std::move(name)), memory_(name_, rules.memory_bytes) {
  DPWA_INVARIANT(!rules_.merged || rules_.staleness == 0, "merged pushes are never stale",
                 rules_.staleness);
}

void ShardEngine::send(const std::string& to, std::uint64_t tag, Message message) {
  outgoing_.push_back({to, tag, std::move(message)});
}

void ShardEngine::refuse(const std::string& to, std::uint64_t tag, const SliceId& slice,
                         AnswerKind kind, std::uint64_t step, std::string problem) {
  send(to, tag,
       Answer{epoch_.number, slice, kind, step, 0, nullptr, std::move(problem), snapshot()});
}

void ShardEngine::explain_refusal(const std::string& to, std::uint64_t tag, const SliceId& slice,
                                  AnswerKind kind, std::uint64_t step, const std::string& problem) {
  refuse(to, tag, slice, kind, step, "key " + slice.key.text() + ", worker " + to + ": " + problem);
}

void ShardEngine::answer(const Entry& entry, const Waiter& waiter) {
  const auto& [id, held] = entry;
  if (waiter.kind == AnswerKind::created && !may_begin(waiter.worker)) {
    newcomers_[{id, waiter.worker}] = waiter;
    return;
  }
  Answer answer{epoch_.number, id, waiter.kind, waiter.step, held.version, nullptr, {}, snapshot()};
  if (waiter.kind == AnswerKind::created || waiter.kind == AnswerKind::value ||
      waiter.kind == AnswerKind::unchanged) {
    answer.step = held.step_for(epoch_, waiter.worker, rules_.merged);
  }
  if (waiter.wants_value) answer.values = held.values;
  send(waiter.worker, waiter.tag, std::move(answer));
}

bool ShardEngine::is_primary(std::uint32_t home) const {
  return holders_of(epoch_, home, rules_.replicas).primary == self_;
}

std::optional<std::size_t> ShardEngine::backup_of(std::uint32_t home) const {
  return holders_of(epoch_, home, rules_.replicas).backup;
}

const std::string& ShardEngine::name_of_backup(const Held& held) const {
  const auto backup = backup_of(held.home);
  DPWA_INVARIANT(backup, "a slice that is stored elsewhere has a backup", held.home, epoch_.number);
  return epoch_.servers[*backup].id.name;
}

ShardEngine::Entry& ShardEngine::entry_of(const SliceId& slice) {
  const auto found = slices_.find(slice);
  DPWA_INVARIANT(found != slices_.end(), "a slice that something waits for is here",
                 slice.key.text(), slice.index);
  return *found;
}

// Why a request of a worker is refused before it is looked at.
std::optional<AnswerKind> ShardEngine::obstacle(const MemberId& from, std::uint64_t epoch,
                                                bool at_end) const {
  if (epoch != epoch_.number || epoch == 0) return AnswerKind::other_epoch;
  const WorkerEntry* worker = epoch_.worker(from.name);
  if (worker != nullptr && worker->id == from) return std::nullopt;
  if (at_end && epoch_.is_at_end(from)) return std::nullopt;
  return AnswerKind::not_member;
}

void ShardEngine::install(const Epoch& epoch, TimePoint now) {
  DPWA_INVARIANT(epoch.number > epoch_.number, "epochs are installed in ascending order",
                 epoch.number, epoch_.number);
  const auto self = epoch.server(name_);
  DPWA_INVARIANT(self, "each epoch has all servers", name_, epoch.number);
  epoch_ = epoch;
  self_ = static_cast<std::uint32_t>(*self);
  inits_.clear();
  newcomers_.clear();
  comers_.install(epoch_, now);
  cut_.install(epoch_);
  to_sync_.clear();
  syncing_ = 0;
  std::erase_if(slices_, [&](const Entry& entry) {
    const Holders holders = holders_of(epoch_, entry.second.home, rules_.replicas);
    if (holders.primary == self_ || holders.backup == self_) return false;
    memory_.recount(entry.second.bytes, 0);
    return true;
  });
  const auto add = [](std::uint64_t sum, const Entry& entry) { return sum + entry.second.bytes; };
  DPWA_INVARIANT(bytes() == std::accumulate(slices_.begin(), slices_.end(), std::uint64_t{0}, add),
                 "the bytes of a server are those of its slices", bytes(), slices_.size());
  for (Entry& entry : slices_) {
    Held& held = entry.second;
    held.backup = Backup::unsynced;
    held.compared = false;
    held.pulls.clear();
    held.capture.install(epoch_);
    std::erase_if(held.begins, [&](const auto& each) { return !epoch_.has(each.second.worker); });
    for (auto& [step, round] : held.rounds) round.forget_waiters();
    if (!is_primary(held.home)) {
      held.rounds.clear();
      held.pending.clear();
      held.capture.clear();
      continue;
    }
    // Updates that the last epoch left open count as stored once the new backup has them.
    const std::uint64_t round_before =
        held.primary ? held.acknowledged_clock(epoch_, rules_.merged) : std::uint64_t{0};
    held.pending.clear();
    if (must_store(held)) {
      held.pending.add(held.version, round_before, {});
    } else {
      held.acknowledged = held.clocks;
    }
    if (backup_of(held.home)) to_sync_.insert(entry.first);
  }
  for (Entry& entry : slices_) {
    entry.second.primary = is_primary(entry.second.home);
    if (entry.second.primary) close_rounds(entry, now);
    end_capture(entry);
  }
  all_synced_ = false;
  capture_untouched();
  continue_sync(now);
}

std::size_t ShardEngine::waiting_inits(const std::string& worker) const {
  return static_cast<std::size_t>(std::ranges::count_if(inits_, [&](const auto& each) {
    return std::ranges::any_of(each.second,
                               [&](const auto& init) { return init.waiter.worker == worker; });
  }));
}

void ShardEngine::receive(const MemberId& from, std::uint64_t tag, Init message, TimePoint now) {
  const SliceId& id = message.slice;
  if (const auto kind = obstacle(from, message.epoch)) return refuse(from.name, tag, id, *kind, 0);
  const auto problem = spec_problem(message.spec);
  if (problem) {
    return refuse(from.name, tag, id, AnswerKind::wrong_spec, 0,
                  "key " + id.key.text() + " of worker " + from.name + " " + *problem);
  }
  const auto found_slice = slice_at(id.key, message.spec.elements(),
                                    static_cast<std::uint32_t>(epoch_.servers.size()), id.index);
  if (!found_slice) {
    return refuse(from.name, tag, id, AnswerKind::wrong_spec, 0,
                  "key " + id.key.text() + " has no slice " + std::to_string(id.index));
  }
  const Slice& slice = *found_slice;
  if (!is_primary(slice.server)) return refuse(from.name, tag, id, AnswerKind::not_primary, 0);

  const Waiter waiter{from.name, tag, AnswerKind::created, 0, false};
  const auto refuse_spec = [&](const ValueSpec& own, const Waiter& other, const ValueSpec& its) {
    refuse(other.worker, other.tag, id, AnswerKind::wrong_spec, 0,
           "key " + id.key.text() + " is " + own.text() + ", worker " + other.worker + " has " +
               its.text());
  };
  if (const auto found = slices_.find(id); found != slices_.end()) {
    Held& held = found->second;
    if (held.spec != message.spec) return refuse_spec(held.spec, waiter, message.spec);
    if (!rules_.merged)
      held.note_begin(epoch_, from, held.step_for(epoch_, from.name, /*merged=*/false));
    answer_once_stored(*found, waiter);
    return serve_pulls(*found);
  }
  if (!inits_.contains(id) && waiting_inits(from.name) >= most_waiting_inits) {
    return explain_refusal(from.name, tag, id, AnswerKind::wrong_spec, 0,
                           std::to_string(most_waiting_inits) +
                               " of its keys wait for the values of worker " +
                               epoch_.workers.front().id.name);
  }
  auto& waiting = inits_[id];
  std::erase_if(waiting, [&](const auto& each) { return each.waiter.worker == from.name; });
  waiting.push_back({waiter, message.spec});
  if (from.name != epoch_.workers.front().id.name) return;
  const std::size_t bytes = slice.elements.count * size_of(message.spec.dtype);
  if (message.values.size() != bytes) {
    waiting.pop_back();
    return refuse(from.name, tag, id, AnswerKind::wrong_spec, 0,
                  "key " + id.key.text() + " of worker " + from.name + ": slice " +
                      std::to_string(id.index) + " has " + std::to_string(bytes) + " bytes, not " +
                      std::to_string(message.values.size()));
  }
  // The first slice of a key is refused unless all of them that are kept here have room.
  const auto of_key = slices_.lower_bound({id.key, 0});
  const bool first_of_key = of_key == slices_.end() || of_key->first.key != id.key;
  const std::uint64_t elements =
      first_of_key ? elements_at(id.key, message.spec.elements(),
                                 static_cast<std::uint32_t>(epoch_.servers.size()), slice.server)
                   : slice.elements.count;
  if (const auto why = memory_.shortage(memory_of(message.spec.dtype, elements))) {
    for (const auto& [each, its] : waiting) {
      explain_refusal(each.worker, each.tag, id, AnswerKind::no_memory, 0, *why);
    }
    inits_.erase(id);
    return;
  }
  Entry& entry = *slices_.try_emplace(id).first;
  Held& held = entry.second;
  held.spec = std::move(message.spec);
  held.home = slice.server;
  held.elements = slice.elements.count;
  held.stamp = epoch_.number;
  held.primary = true;
  held.values = std::make_shared<Bytes>(std::move(message.values));
  count_bytes(held);
  std::vector<Waiter> waiters;
  for (const auto& [each, its] : waiting) {
    if (its == held.spec) {
      waiters.push_back(each);
    } else {
      refuse_spec(held.spec, each, its);
    }
  }
  inits_.erase(id);
  if (!must_store(held)) {
    for (const Waiter& each : waiters) answer(entry, each);
    if (backup_of(held.home)) to_sync_.insert(id);
    return;
  }
  held.pending.add(held.version, 0, std::move(waiters));
  send_copy(entry, now);
}

ShardEngine::Entry* ShardEngine::slice_for(const MemberId& from, std::uint64_t tag,
                                           std::uint64_t epoch, const SliceId& id,
                                           std::uint64_t step, bool at_end) {
  const auto found = slices_.find(id);
  if (const auto kind = obstacle(from, epoch, at_end)) {
    refuse(from.name, tag, id, *kind, step);
  } else if (found == slices_.end()) {
    explain_refusal(from.name, tag, id, AnswerKind::unknown_key, step,
                    "no such key was initialised");
  } else if (!is_primary(found->second.home)) {
    refuse(from.name, tag, id, AnswerKind::not_primary, step);
  } else {
    return &*found;
  }
  return nullptr;
}

void ShardEngine::receive(const MemberId& from, std::uint64_t tag, Push message, TimePoint now) {
  const auto refused = [&](AnswerKind kind, const std::string& problem) {
    explain_refusal(from.name, tag, message.slice, kind, message.step, problem);
  };
  Entry* const found = slice_for(from, tag, message.epoch, message.slice, message.step);
  if (found == nullptr) return;
  Held& held = found->second;
  const std::uint64_t bytes = compressed_bytes(message.compression, held.spec.dtype, held.elements);
  if (message.content().size() != bytes ||
      compression_of(message.compression, held.spec.dtype) != message.compression) {
    return refused(AnswerKind::wrong_spec, "slice " + std::to_string(message.slice.index) + " of " +
                                               held.spec.text() + " has " + std::to_string(bytes) +
                                               " bytes, not " +
                                               std::to_string(message.content().size()));
  }
  if (!std::isfinite(message.weight) || message.weight < 0) {
    return refused(AnswerKind::wrong_spec, "the weight is not a number from 0 on");
  }
  if (message.step == std::numeric_limits<std::uint64_t>::max()) {
    return refused(AnswerKind::wrong_spec, "no step follows step " + std::to_string(message.step));
  }
  if (message.optimizer.empty()) {
    if (!rules_.merged) {
      return refused(AnswerKind::no_optimizer, "an update at each push needs an optimizer");
    }
  } else if (const auto options = decode_options(message.optimizer); !options) {
    return refused(AnswerKind::bad_optimizer,
                   "the optimizer is unknown to this server, or its options are not sound");
  } else {
    const std::uint64_t state = OptimizerState::bytes_of(*options, held.spec.dtype, held.elements);
    const std::uint64_t has = held.optimizer->bytes().size();
    const auto why = state > has ? memory_.shortage(state - has) : std::nullopt;
    if (why) return refused(AnswerKind::no_memory, *why);
  }
  if (rules_.merged) {
    push_merged(*found, from, tag, std::move(message), now);
  } else {
    push_single(*found, from, tag, message, now);
  }
}

void ShardEngine::receive(const MemberId& from, std::uint64_t tag, const Pull& message, TimePoint) {
  Entry* const found =
      slice_for(from, tag, message.epoch, message.slice, message.clock, /*at_end=*/true);
  if (found == nullptr) return;
  // A request that was sent again: the earlier one was lost, or still waits.
  std::erase_if(found->second.pulls, [&](const Held::PullWaiter& pull) {
    return pull.worker == from && pull.tag == tag;
  });
  const auto waiting = std::ranges::count(found->second.pulls, from, &Held::PullWaiter::worker);
  if (static_cast<std::size_t>(waiting) >= most_waiting_pulls) {
    return explain_refusal(from.name, tag, message.slice, AnswerKind::wrong_spec, message.clock,
                           std::to_string(waiting) + " earlier pulls of it wait");
  }
  if (!rules_.merged) found->second.note_begin(epoch_, from, message.clock);
  found->second.pulls.push_back({from, tag, message.clock, message.known_version});
  serve_pulls(*found);
}

std::vector<std::uint16_t> ShardEngine::filled() const {
  std::vector<std::uint16_t> servers;
  if (!all_synced_) return servers;
  for (std::uint32_t home = 0; home < epoch_.servers.size(); ++home) {
    const auto backup = backup_of(home);
    if (!is_primary(home) || !backup) continue;
    const auto server = static_cast<std::uint16_t>(*backup);
    if (epoch_.servers[server].state == ServerState::filling &&
        std::ranges::count(servers, server) == 0) {
      servers.push_back(server);
    }
  }
  return servers;
}

void ShardEngine::count_bytes(Held& held) {
  DPWA_INVARIANT(held.values && held.values->size() == held.elements * size_of(held.spec.dtype),
                 "a slice has all its values", held.elements, held.spec.dtype, held.version);
  held.bytes = memory_.recount(
      held.bytes, memory_of(held.spec.dtype, held.elements) + held.optimizer->bytes().size());
}

std::size_t ShardEngine::primaries() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      slices_, [&](const Entry& entry) { return is_primary(entry.second.home); }));
}

std::size_t ShardEngine::without_replica() const {
  if (!rules_.replicas) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(slices_, [&](const Entry& entry) {
    return is_primary(entry.second.home) && entry.second.backup != Backup::synced;
  }));
}

std::optional<ShardEngine::View> ShardEngine::view(const SliceId& slice) const {
  const auto found = slices_.find(slice);
  if (found == slices_.end()) return std::nullopt;
  return View{found->second.version, found->second.round, *found->second.values};
}

}  // namespace dpwa::kvstore
