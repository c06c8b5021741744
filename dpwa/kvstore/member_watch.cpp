#include "dpwa/kvstore/member_watch.h"

#include <algorithm>
#include <set>
#include <utility>

namespace dpwa::kvstore {
namespace {

constexpr std::uint64_t most_steps = std::uint64_t{1} << 48;  // no run gets there

}  // namespace

MemberWatch::MemberWatch(const WatchOptions& options, MemberId self, TimePoint started)
    : options_(options), self_(std::move(self)), looked_(started) {
  views_[self_.name] = {self_.incarnation, {}, started, started};
}

void MemberWatch::heard(const MemberId& from, const Beat& beat, TimePoint now) {
  View& view = views_[from.name];
  if (from.incarnation < view.incarnation) return;
  if (from.incarnation > view.incarnation) {
    if (is_taken(from, now)) return;
    view = {from.incarnation, beat, now, now};
  }
  const bool advanced = beat.clock > view.beat.clock;
  if (advanced || view.beat.waiting) view.since = now;
  // Beats may overtake one another.
  if (beat.clock >= view.beat.clock || beat.epoch > view.beat.epoch) view.beat = beat;
  view.heard = now;
}

void MemberWatch::look(TimePoint now) {
  const Duration missed = now - std::exchange(looked_, now) - options_.silent_after / 2;
  if (missed <= Duration::zero()) return;
  for (auto& [name, view] : views_) {
    view.heard = std::min(view.heard + missed, now);
    view.since = std::min(view.since + missed, now);
  }
}

// A server joins no epoch by itself, and takes the place of its former process at once.
bool MemberWatch::is_taken(const MemberId& worker, TimePoint now) const {
  const auto found = views_.find(worker.name);
  if (found == views_.end() || found->second.incarnation == worker.incarnation) return false;
  return found->second.beat.joins && alive({worker.name, found->second.incarnation}, now);
}

bool MemberWatch::has_left(const MemberId& worker) const {
  const auto found = views_.find(worker.name);
  return found != views_.end() && found->second.incarnation == worker.incarnation &&
         !found->second.beat.joins;
}

void MemberWatch::lost(const MemberId& member) {
  const auto view = views_.find(member.name);
  if (view != views_.end() && view->second.incarnation == member.incarnation) {
    view->second.gone = true;
  }
}

void MemberWatch::installed(const Epoch& epoch, TimePoint now) {
  const auto add = [&](const MemberId& member) {
    View& view = views_[member.name];
    if (member.incarnation > view.incarnation) view = {member.incarnation, {}, now, now};
  };
  for (const ServerEntry& server : epoch.servers) {
    if (server.state != ServerState::down) add(server.id);
  }
  for (const WorkerEntry& worker : epoch.workers) add(worker.id);
}

Duration MemberWatch::hung_after(const Epoch& epoch, const std::string& worker) const {
  const auto step_of = [&](const std::string& name) {
    const auto found = views_.find(name);
    return found == views_.end() ? 0 : found->second.beat.longest_step_us;
  };
  if (step_of(worker) == 0) return options_.hung_at_first;
  std::uint64_t longest = 0;
  for (const WorkerEntry& each : epoch.workers) longest = std::max(longest, step_of(each.id.name));
  const double limit = static_cast<double>(longest) * 1e3 * options_.hung_factor;
  constexpr Duration most = std::chrono::hours(24);  // whatever a worker says of its steps
  if (limit >= static_cast<double>(most.count())) return most;
  return std::max(options_.hung_min, Duration(static_cast<Duration::rep>(limit)));
}

bool MemberWatch::alive(const MemberId& member, TimePoint now) const {
  if (member == self_) return true;
  const auto found = views_.find(member.name);
  if (found == views_.end()) return false;
  const View& view = found->second;
  return view.incarnation == member.incarnation && !view.gone &&
         now - view.heard < options_.silent_after;
}

bool MemberWatch::hangs(const WorkerEntry& worker, const Epoch& epoch, TimePoint now) const {
  const View& view = views_.at(worker.id.name);
  if (view.beat.waiting || now - view.since < hung_after(epoch, worker.id.name)) return false;
  return std::ranges::any_of(epoch.workers, [&](const WorkerEntry& other) {
    const auto found = views_.find(other.id.name);
    return found != views_.end() && other.id != worker.id &&
           found->second.incarnation == other.id.incarnation &&
           (found->second.beat.waiting || found->second.beat.clock > view.beat.clock);
  });
}

// Only a beat of the epoch in which the worker takes part counts: an older one is from before it
// joined.
bool MemberWatch::leaves(const WorkerEntry& worker, const Epoch& epoch) const {
  const View& view = views_.at(worker.id.name);
  return view.incarnation == worker.id.incarnation && view.beat.epoch == epoch.number &&
         !view.beat.joins;
}

bool MemberWatch::proposes(const Epoch& current, TimePoint now) const {
  const auto first = std::ranges::find_if(current.servers, [&](const ServerEntry& server) {
    return server.state == ServerState::up && alive(server.id, now);
  });
  return first != current.servers.end() && first->id == self_;
}

const Beat& MemberWatch::beat_of(const ServerEntry& server, const Beat& own) const {
  static const Beat none;
  if (server.id.name == self_.name) return own;
  const auto found = views_.find(server.id.name);
  return found == views_.end() ? none : found->second.beat;
}

// Whether all servers of the file have been heard of, without an epoch and with their stock.
bool MemberWatch::at_start(const Epoch& current, const Beat& own, TimePoint now) const {
  if (current.number != 0) return false;
  return std::ranges::all_of(current.servers, [&](const ServerEntry& server) {
    const auto found = views_.find(server.id.name);
    if (found == views_.end()) return false;
    const Beat& beat = beat_of(server, own);
    return beat.epoch == 0 && beat.stock.listed &&
           alive({server.id.name, found->second.incarnation}, now);
  });
}

std::optional<MemberWatch::Start> MemberWatch::start(const Epoch& current, const Beat& own,
                                                     TimePoint now) const {
  if (!at_start(current, own, now)) return std::nullopt;
  std::set<SnapshotId> common(own.stock.held.begin(), own.stock.held.end());
  bool had_complete = false;
  std::string held;
  for (const ServerEntry& server : current.servers) {
    const Stock& stock = beat_of(server, own).stock;
    had_complete = had_complete || stock.had_complete;
    std::erase_if(common,
                  [&](const SnapshotId& id) { return std::ranges::count(stock.held, id) == 0; });
    const auto newest = std::ranges::max_element(stock.held);
    held += (held.empty() ? "" : ", ") + server.id.name + ": ";
    held += newest == stock.held.end() ? "none" : "up to " + std::to_string(newest->number);
  }
  if (!common.empty()) return Start{*common.rbegin(), {}, common};
  if (!had_complete) return Start{};
  return Start{{}, "no snapshot of the servers is at all of them (" + held + ")", {}};
}

std::uint32_t MemberWatch::stored_everywhere(const Epoch& current, const Beat& own) const {
  std::uint32_t number = own.stored;
  for (const ServerEntry& server : current.servers) {
    number = std::min(number, beat_of(server, own).stored);
  }
  return number;
}

std::uint32_t MemberWatch::over_everywhere(const Epoch& current, const Beat& own) const {
  std::uint32_t number = own.over;
  for (const ServerEntry& server : current.servers) {
    number = std::min(number, beat_of(server, own).over);
  }
  return number;
}

void MemberWatch::follow(const Epoch& lost, TimePoint now) {
  if (lost_.number == 0) lost_since_ = now;
  lost_ = lost;
}

bool MemberWatch::others_are_in(const Epoch& epoch, TimePoint now) const {
  return std::ranges::any_of(epoch.servers, [&](const ServerEntry& server) {
    if (server.id.name == self_.name || !alive(server.id, now)) return false;
    return views_.at(server.id.name).beat.epoch > 0;
  });
}

std::size_t MemberWatch::workers_to_begin(TimePoint now) const {
  if (lost_.number == 0) return options_.min_workers;
  const std::size_t before = std::max<std::size_t>(1, lost_.workers.size());
  return now - lost_since_ < options_.silent_after ? before : 1;
}

// Of the servers of the file, all without an epoch. Its number is higher than that of any epoch
// before all of them ended, because incarnations grow.
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
  next.number = std::max(next.number, lost_.number + 1);  // a clock that was set back
  next.run = next.number;
  next.from = *own.stock.loaded;
  change_workers(next, current, own, now);
  if (next.workers.size() < workers_to_begin(now)) return std::nullopt;
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
    if (server.state != ServerState::down && !alive(server.id, now)) {
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
      if (alive(back, now)) server = {back, ServerState::filling};
    }
  }
}

void MemberWatch::change_workers(Epoch& next, const Epoch& current, const Beat& own,
                                 TimePoint now) const {
  std::uint64_t clock = own.clock;
  for (const auto& [name, view] : views_) {
    // The first epoch after a lost run goes on from where the workers that join it are.
    const MemberId id{name, view.incarnation};
    const bool member = current.number == 0 ? view.beat.joins : current.has(id);
    const bool counts = next.server(name) || (member && alive(id, now));
    if (counts && view.beat.clock < most_steps) clock = std::max(clock, view.beat.clock);
  }
  for (const WorkerEntry& worker : next.workers) clock = std::max(clock, worker.first_step);
  // Workers that train finish their current step. Workers that begin together begin with step 0, or
  // where the servers' snapshot ends.
  const std::uint64_t first_step = clock == 0 || current.number == 0 ? clock : clock + 1;

  std::erase_if(next.workers, [&](const WorkerEntry& worker) {
    const std::string& name = worker.id.name;
    const bool is_lost = !alive(worker.id, now) || hangs(worker, current, now);
    if (!is_lost && !leaves(worker, current)) return false;
    if (is_lost) {
      std::erase(next.left, name);
    } else if (views_.at(name).beat.clock > worker.first_step &&
               std::ranges::count(next.left, name) == 0) {
      next.left.push_back(name);
    }
    return true;
  });
  std::ranges::sort(next.left);
  for (const auto& [name, view] : views_) {
    const MemberId id{name, view.incarnation};
    // It has to know that it does not take part: one that was just left out may hang.
    const bool of_lost = current.number == 0 && view.beat.epoch <= lost_.number;
    const bool joins = view.beat.joins && (view.beat.epoch == current.number || of_lost);
    if (!joins || next.server(name) || !alive(id, now)) continue;
    if (next.worker(name) != nullptr || current.has(id)) continue;
    next.workers.push_back({id, view.beat.own_steps ? 0 : first_step});
  }
  std::ranges::sort(next.workers, {}, [](const WorkerEntry& worker) { return worker.id.name; });
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

std::vector<std::string> MemberWatch::missing(const Epoch& current, TimePoint now) const {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < current.servers.size(); ++at) {
    const ServerEntry& server = current.servers[at];
    if (server.state == ServerState::up && !alive(server.id, now) && !can_spare(current, at, now)) {
      names.push_back(server.id.name);
    }
  }
  return names;
}

std::vector<std::string> MemberWatch::started_again(const Epoch& epoch) const {
  const auto is_new = [&](std::size_t at) {
    const MemberId& id = epoch.servers[at].id;
    const auto found = views_.find(id.name);
    return found != views_.end() && found->second.incarnation > id.incarnation;
  };
  // A server in a later epoch knows those that were filled since.
  const bool later = std::ranges::any_of(epoch.servers, [&](const ServerEntry& server) {
    const auto found = views_.find(server.id.name);
    return found != views_.end() && found->second.beat.epoch > epoch.number;
  });
  if (later) return {};
  std::set<std::string> names;
  for (std::size_t home = 0; epoch.number > 0 && home < epoch.servers.size(); ++home) {
    const Holders holders = holders_of(epoch, home, options_.replicas);
    if (!holders.primary || !is_new(*holders.primary)) continue;
    const bool has_backup =
        holders.backup && epoch.servers[*holders.backup].state == ServerState::up;
    if (has_backup && !is_new(*holders.backup)) continue;
    names.insert(epoch.servers[*holders.primary].id.name);
    if (has_backup) names.insert(epoch.servers[*holders.backup].id.name);
  }
  return {names.begin(), names.end()};
}

}  // namespace dpwa::kvstore
