#include <algorithm>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {

// Whether an update of this slice is acknowledged only after the backup has it. While a server is
// being filled, this holds for the slices that it has been sent, and for all slices once it has
// them all.
bool ShardEngine::must_store(const Held& held) const {
  const auto backup = backup_of(held.home);
  if (!backup) return false;
  return epoch_.servers[*backup].state == ServerState::up || all_synced_ ||
         held.backup != Backup::unsynced;
}

void ShardEngine::acknowledge(Entry& entry, std::uint64_t version) {
  Held& held = entry.second;
  const std::vector<Waiter> waiters = held.pending.stored(version);
  if (held.pending.empty()) held.acknowledged = held.clocks;
  for (const Waiter& waiter : waiters) answer(entry, waiter);
  serve_pulls(entry);
}

void ShardEngine::mark_syncing(Entry& entry, TimePoint now) {
  auto& [id, held] = entry;
  if (held.backup != Backup::syncing) ++syncing_;
  held.backup = Backup::syncing;
  held.asked = now;
  to_sync_.erase(id);
}

void ShardEngine::begin_sync(Entry& entry, TimePoint now) {
  auto& [id, held] = entry;
  mark_syncing(entry, now);
  send(name_of_backup(held), 0, Sync{epoch_.number, id, held.version, held.stamp});
}

void ShardEngine::continue_sync(TimePoint now) {
  while (!to_sync_.empty() && syncing_ < rules_.syncs_at_once) {
    begin_sync(entry_of(*to_sync_.begin()), now);
  }
  if (to_sync_.empty() && syncing_ == 0) all_synced_ = true;
}

void ShardEngine::send_copy(Entry& entry, TimePoint now) {
  auto& [id, held] = entry;
  mark_syncing(entry, now);
  Copy copy = copy_of(id, held.spec, held);
  copy.epoch = epoch_.number;
  send(name_of_backup(held), 0, std::move(copy));
}

void ShardEngine::tick(TimePoint now) {
  if (comers_.end_patience(now)) answer_newcomers();
  if (!rules_.replicas || now - looked_ < rules_.resend / 4) return;
  looked_ = now;
  for (Entry& entry : slices_) {
    Held& held = entry.second;
    const bool waits =
        held.backup == Backup::syncing || (held.backup == Backup::synced && !held.pending.empty());
    if (waits && now - held.asked >= rules_.resend) begin_sync(entry, now);
  }
}

// The slice, if `from` is its backup in this epoch and this server its primary.
ShardEngine::Entry* ShardEngine::with_backup(const MemberId& from, std::uint64_t epoch,
                                             const SliceId& slice) {
  const auto found = slices_.find(slice);
  if (epoch != epoch_.number || found == slices_.end()) return nullptr;
  Held& held = found->second;
  const auto backup = backup_of(held.home);
  if (!is_primary(held.home) || !backup || epoch_.servers[*backup].id != from) return nullptr;
  return &*found;
}

void ShardEngine::receive(const MemberId& from, const Stored& message, TimePoint now) {
  Entry* entry = with_backup(from, message.epoch, message.slice);
  if (entry == nullptr) return;
  Held& held = entry->second;
  if (held.backup == Backup::syncing) {
    if (message.version == held.version) {
      held.backup = Backup::synced;
      DPWA_INVARIANT(syncing_ > 0, "a slice that is being synced is counted",
                     message.slice.key.text(), message.version);
      --syncing_;
    } else {
      send_copy(*entry, now);
    }
  }
  held.asked = now;
  acknowledge(*entry, message.version);
  continue_sync(now);
}

void ShardEngine::receive(const MemberId& from, const Want& message, TimePoint now) {
  if (Entry* entry = with_backup(from, message.epoch, message.slice)) send_copy(*entry, now);
}

// Whether `from` is the primary of `home` in this epoch, and this server its backup.
bool ShardEngine::from_primary(const MemberId& from, std::uint64_t epoch,
                               std::uint32_t home) const {
  if (epoch != epoch_.number || epoch == 0 || home >= epoch_.servers.size()) return false;
  const Holders holders = holders_of(epoch_, home, rules_.replicas);
  return holders.primary && holders.backup == self_ && epoch_.servers[*holders.primary].id == from;
}

void ShardEngine::receive(const MemberId& from, Forward message, TimePoint) {
  if (message.epoch != epoch_.number) return;
  const auto found = slices_.find(message.slice);
  if (found != slices_.end() && !from_primary(from, message.epoch, found->second.home)) return;
  const bool fits = found != slices_.end() && found->second.compared &&
                    message.version <= found->second.version + 1;
  if (!fits) return send(from.name, 0, Want{epoch_.number, message.slice});
  Held& held = found->second;
  const std::size_t bytes = held.elements * size_of(computed_in(held.spec.dtype));
  if (!message.gradient.empty() && message.gradient.size() != bytes) return;
  if (message.version == held.version + 1) apply(held, message);
  send(from.name, 0, Stored{epoch_.number, message.slice, held.version});
}

void ShardEngine::receive(const MemberId& from, const Sync& message, TimePoint) {
  if (message.epoch != epoch_.number) return;
  const auto found = slices_.find(message.slice);
  if (found == slices_.end()) return send(from.name, 0, Want{epoch_.number, message.slice});
  Held& held = found->second;
  if (!from_primary(from, message.epoch, held.home)) return;
  if (held.version == message.version && held.stamp == message.stamp) held.compared = true;
  // The slice was compared before and has been updated since: an old message.
  if (!held.compared || held.version < message.version) {
    return send(from.name, 0, Want{epoch_.number, message.slice});
  }
  send(from.name, 0, Stored{epoch_.number, message.slice, held.version});
}

void ShardEngine::receive(const MemberId& from, Copy message, TimePoint) {
  if (message.epoch != epoch_.number || epoch_.number == 0) return;
  const auto found =
      slice_at(message.slice.key, message.spec.elements(),
               static_cast<std::uint32_t>(epoch_.servers.size()), message.slice.index);
  if (!found) return;
  const Slice& slice = *found;
  if (!from_primary(from, message.epoch, slice.server)) return;
  const SliceId id = message.slice;
  const ValueSpec spec = message.spec;
  auto state = state_of(std::move(message), slice.elements.count);
  if (!state) return;
  // An honest primary gives no more than it may hold itself.
  const std::uint64_t after = memory_.bytes() + memory_of(spec.dtype, slice.elements.count);
  if (rules_.memory_bytes != 0 && after > 2 * rules_.memory_bytes && !slices_.contains(id)) return;
  Held& held = slices_[id];
  if (!held.compared || held.version < state->version) {
    memory_.recount(held.bytes, 0);
    held = {};
    static_cast<SliceState&>(held) = *std::move(state);
    // Copies the values: the sender goes on using its own.
    held.values = std::make_shared<Bytes>(*held.values);
    held.spec = spec;
    held.home = slice.server;
    held.elements = slice.elements.count;
    count_bytes(held);
    for (const auto& [name, clock] : held.clocks) clock_ = std::max(clock_, clock.next);
    held.compared = true;
  }
  send(from.name, 0, Stored{epoch_.number, id, held.version});
}

}  // namespace dpwa::kvstore
