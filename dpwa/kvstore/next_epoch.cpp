// The epoch that should follow, from what a server knows of the members.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/kvstore/link_limits.h"
#include "dpwa/kvstore/member_watch.h"

namespace dpwa::kvstore {
namespace {

constexpr std::uint64_t most_steps = std::uint64_t{1} << 48;  // no run gets there

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

}  // namespace

// Programs that count the steps of each key apart may all do something else at a time, and their
// clocks do not compare: one of them holds others up once these have waited for as long.
bool MemberWatch::holds_up(const View& worker, const MemberId& other, Duration limit,
                           TimePoint now) const {
  const auto found = views_.find(other.name);
  if (found == views_.end() || found->second.incarnation != other.incarnation) return false;
  const View& view = found->second;
  if (worker.beat.own_steps) return view.waits_since && now - *view.waits_since >= limit;
  return view.beat.waiting || view.beat.clock > worker.beat.clock;
}

bool MemberWatch::hangs(const WorkerEntry& worker, const Epoch& epoch, TimePoint now) const {
  const View& view = views_.at(worker.id.name);
  const Duration limit = hung_after(epoch, worker.id.name);
  if (view.beat.waiting || now - view.since < limit) return false;
  const auto waits = [&](const MemberId& other) { return holds_up(view, other, limit, now); };
  return std::ranges::any_of(
             epoch.workers,
             [&](const WorkerEntry& other) { return other.id != worker.id && waits(other.id); }) ||
         std::ranges::any_of(epoch.at_end, waits);
}

// Only a beat of the epoch in which the worker takes part counts: an older one is from before it
// joined.
bool MemberWatch::leaves(const WorkerEntry& worker, const Epoch& epoch) const {
  const View& view = views_.at(worker.id.name);
  return view.incarnation == worker.id.incarnation && view.beat.epoch == epoch.number &&
         !view.beat.joins;
}

// A server that is deaf to this one would not count its vote. And one that hears less than half of
// the servers cannot do without the others: two neighbours have the only copies of some slices.
bool MemberWatch::proposes(const Epoch& current, TimePoint now) const {
  const std::vector<MemberId> live = live_servers(current, now);
  const auto up = std::ranges::count(current.servers, ServerState::up, &ServerEntry::state);
  if (2 * static_cast<std::ptrdiff_t>(live.size()) < up) return false;
  for (const MemberId& server : live) {
    if (server == self_) return true;
    if (!is_deaf(server, self_, now, deaf_after())) return false;
  }
  return false;
}

std::size_t MemberWatch::workers_to_begin(TimePoint now) const {
  if (lost_.number == 0) return options_.min_workers;
  const std::size_t before = std::max<std::size_t>(1, lost_.workers.size() + lost_.at_end.size());
  // Each has had the time to connect again.
  return now - lost_since_ < options_.silent_after + 2 * longest_pause ? before : 1;
}

// The first epoch of the servers of the file, all without one. Its number is higher than that of
// any epoch before all of them ended, because incarnations grow.
std::optional<Epoch> MemberWatch::first_epoch(const Epoch& current, const Beat& own,
                                              TimePoint now) const {
  if (current.servers.front().id.name != self_.name) return std::nullopt;
  if (!at_start(current, own, now) || !own.stock.loaded) return std::nullopt;
  Epoch next = current;
  for (ServerEntry& server : next.servers) {
    if (beat_of(server, own).stock.loaded != own.stock.loaded) return std::nullopt;
    server = {{server.id.name, views_.at(server.id.name).incarnation}, ServerState::up};
    next.number = std::max(next.number, server.id.incarnation);
  }
  for (const ServerEntry& server : next.servers) {
    if (!heard_by_servers(next, server.id, now)) return std::nullopt;
  }
  // A clock may have been set back.
  next.number = std::max(next.number, lost_.number + 1);
  for (const ServerEntry& server : current.servers) {
    for (const SnapshotId& id : beat_of(server, own).stock.held)
      next.number = std::max(next.number, id.run + 1);
  }
  next.run = next.number;
  next.from = *own.stock.loaded;
  next.left = lost_.left;
  change_workers(next, current, own, now);
  if (next.workers.size() + next.at_end.size() < workers_to_begin(now)) return std::nullopt;
  return next;
}

// Whether another server also has the slices that workers find at this one.
bool MemberWatch::can_spare(const Epoch& epoch, std::size_t server, TimePoint now) const {
  for (std::size_t home = 0; home < epoch.servers.size(); ++home) {
    const Holders holders = holders_of(epoch, home, options_.replicas);
    if (holders.primary != server) continue;
    if (!holders.backup) return false;
    const ServerEntry& other = epoch.servers[*holders.backup];
    if (other.state != ServerState::up || !alive(other.id, now)) return false;
  }
  return true;
}

// Whether all servers that have copies for it say in this epoch that it has stored them.
bool MemberWatch::is_filled(const Epoch& epoch, std::size_t server, const Beat& own) const {
  for (std::size_t home = 0; home < epoch.servers.size(); ++home) {
    const Holders holders = holders_of(epoch, home, options_.replicas);
    if (holders.backup != server) continue;
    const MemberId& holder = epoch.servers[*holders.primary].id;
    const Beat& beat = holder == self_ ? own : views_.at(holder.name).beat;
    if (beat.epoch != epoch.number || std::ranges::count(beat.filled, server) == 0) return false;
  }
  // The server cannot be filled with slices that no server has.
  return holders_of(epoch, server, options_.replicas).backup == server;
}

void MemberWatch::change_servers(Epoch& next, const Epoch& current, const Beat& own,
                                 TimePoint now) const {
  for (std::size_t at = 0; at < next.servers.size(); ++at) {
    ServerEntry& server = next.servers[at];
    if (server.state != ServerState::down && is_gone(current, server.id, now)) {
      if (server.state == ServerState::filling || can_spare(next, at, now)) {
        server.state = ServerState::down;
      }
    }
    if (server.state == ServerState::filling && is_filled(current, at, own)) {
      server.state = ServerState::up;
    }
    const auto found = views_.find(server.id.name);
    if (server.state == ServerState::down && options_.replicas && found != views_.end() &&
        found->second.incarnation > server.id.incarnation) {
      const MemberId back{server.id.name, found->second.incarnation};
      if (alive(back, now) && may_be_filled(next, back, now)) {
        server = {back, ServerState::filling};
      }
    }
  }
  leave_out_deaf_servers(next, now);
}

// One server after the other, first the one that most others do not hear or that does not hear most
// others, and of those that are equal the last.
void MemberWatch::leave_out_deaf_servers(Epoch& next, TimePoint now) const {
  while (true) {
    std::optional<std::size_t> worst;
    std::size_t most = 0;
    for (std::size_t at = 0; at < next.servers.size(); ++at) {
      const ServerEntry& server = next.servers[at];
      if (server.state == ServerState::down) continue;
      const auto count_apart = [&](Duration age) {
        return static_cast<std::size_t>(
            std::ranges::count_if(next.servers, [&](const ServerEntry& other) {
              return other.state != ServerState::down && (is_deaf(server.id, other.id, now, age) ||
                                                          is_deaf(other.id, server.id, now, age));
            }));
      };
      // What others say of it comes within a beat.
      auto apart = count_apart(deaf_after()) > 0 ? count_apart(Duration::zero()) : 0;
      if (deaf_to_workers(next, server.id, now)) apart += next.servers.size();
      const bool spare = server.state == ServerState::filling || can_spare(next, at, now);
      if (apart == 0 || apart < most || !spare) continue;
      worst = at;
      most = apart;
    }
    if (!worst) return;
    next.servers[*worst].state = ServerState::down;
  }
}

// A worker that has made its last step remains a member, so that with two servers one of them can
// go on without the other until all workers have the final values.
void MemberWatch::remove_workers(Epoch& next, const Epoch& current, TimePoint now) const {
  const std::vector<MemberId> servers = live_servers(next, now);
  const auto is_lost = [&](const MemberId& worker) {
    const bool is_apart = std::ranges::any_of(servers, [&](const MemberId& server) {
      return is_deaf(server, worker, now, deaf_after());
    });
    return is_apart || !alive(worker, now);
  };
  std::erase_if(next.at_end, [&](const MemberId& worker) {
    const bool lost = is_lost(worker);
    if (lost) std::erase(next.left, worker.name);
    const Beat& beat = views_.at(worker.name).beat;
    return lost || (beat.epoch == current.number && !beat.at_end);
  });
  std::erase_if(next.workers, [&](const WorkerEntry& worker) {
    const std::string& name = worker.id.name;
    const View& view = views_.at(name);
    const Beat& beat = view.beat;
    // It may end before it hears of an epoch that others have made meanwhile.
    const bool has_said_so = worker.since != 0 && view.incarnation == worker.id.incarnation &&
                             beat.epoch >= worker.since && !beat.joins && !beat.at_end;
    const bool lost = (is_lost(worker.id) || hangs(worker, current, now)) && !has_said_so;
    if (!lost && !has_said_so && !leaves(worker, current)) return false;
    if (lost) {
      std::erase(next.left, name);
    } else if (worker.since != 0 || beat.clock > worker.first_step) {
      add_once(next.left, name);
    }
    if (!lost && beat.at_end) next.at_end.push_back(worker.id);
    return true;
  });
}

void MemberWatch::add_workers(Epoch& next, const Epoch& current, const WorkerEntry& first,
                              TimePoint now) const {
  for (const auto& [name, view] : views_) {
    const MemberId id{name, view.incarnation};
    const Beat& beat = view.beat;
    // It has to know that it does not take part: one that was just left out may hang.
    const bool of_lost = current.number == 0 && beat.epoch <= lost_.number;
    const bool knows = beat.epoch == current.number || of_lost;
    if (!knows || (!beat.joins && !beat.at_end) || !alive(id, now)) continue;
    if (current.has(id) || next.has(id) || next.server(name) || next.worker(name) != nullptr)
      continue;
    if (!heard_by_servers(next, id, now)) continue;
    if (beat.joins) {
      next.workers.push_back(beat.own_steps ? WorkerEntry{id, 0, first.since}
                                            : WorkerEntry{id, first.first_step, 0});
      continue;
    }
    next.at_end.push_back(id);
    if (beat.clock > 0) add_once(next.left, name);
  }
}

void MemberWatch::change_workers(Epoch& next, const Epoch& current, const Beat& own,
                                 TimePoint now) const {
  std::uint64_t clock = own.clock;
  for (const auto& [name, view] : views_) {
    // The first epoch after a lost run goes on from where the workers that join it are.
    const WorkerEntry* const entry = current.worker(name);
    const bool trains = entry != nullptr && entry->id.incarnation == view.incarnation;
    const bool member = current.number == 0 ? view.beat.joins : trains;
    const bool counts = next.server(name) || (member && alive({name, view.incarnation}, now));
    if (counts && view.beat.clock < most_steps) clock = std::max(clock, view.beat.clock);
  }
  for (const WorkerEntry& worker : next.workers) clock = std::max(clock, worker.first_step);
  // Workers that train finish their current step. Workers that begin together begin with step 0, or
  // where the servers' snapshot ends.
  const std::uint64_t first_step = clock == 0 || current.number == 0 ? clock : clock + 1;
  remove_workers(next, current, now);
  const std::uint64_t since = current.number == 0 ? next.number : current.number + 1;
  add_workers(next, current, {{}, first_step, since}, now);
  std::ranges::sort(next.left);
  std::ranges::sort(next.workers, {}, [](const WorkerEntry& worker) { return worker.id.name; });
  std::ranges::sort(next.at_end, {}, &MemberId::name);
}

std::optional<Epoch> MemberWatch::successor(const Epoch& current, const Beat& own,
                                            TimePoint now) const {
  if (current.number == 0) return first_epoch(current, own, now);
  if (!proposes(current, now)) return std::nullopt;
  Epoch next = current;
  change_servers(next, current, own, now);
  change_workers(next, current, own, now);
  if (next == current) return std::nullopt;
  ++next.number;
  return next;
}

}  // namespace dpwa::kvstore
