#include "dpwa/kvstore/member_watch.h"

#include <algorithm>
#include <set>
#include <utility>

namespace dpwa::kvstore {
MemberWatch::MemberWatch(const WatchOptions& options, MemberId self, TimePoint started)
    : options_(options), self_(std::move(self)), looked_(started) {
  views_[self_.name] = {self_.incarnation, {}, started, started};
}

bool MemberWatch::heard(const MemberId& from, const Beat& beat, TimePoint now) {
  View& view = views_[from.name];
  if (from.incarnation < view.incarnation) return false;
  if (from.incarnation > view.incarnation) {
    if (is_taken(from, now)) return false;
    view = {from.incarnation, beat, now, now};
  }
  const bool is_new = !std::exchange(view.has_beaten, true);
  if (is_new) view.first = now;
  const bool advanced = beat.clock > view.beat.clock;
  if (advanced || view.beat.waiting || beat.active) view.since = now;
  if (advanced || !beat.waiting) view.waits_since.reset();
  if (beat.waiting && !view.waits_since) view.waits_since = now;
  // Beats may overtake one another.
  if (beat.clock >= view.beat.clock || beat.epoch > view.beat.epoch) view.beat = beat;
  show_life(view, now);
  return is_new;
}

void MemberWatch::show_life(View& view, TimePoint now) const {
  view.heard = now;
  if (view.lost && now - *view.lost > options_.silent_after / 4) view.lost.reset();
}

MemberWatch::View* MemberWatch::view_of(const MemberId& member) {
  const auto found = views_.find(member.name);
  const bool same = found != views_.end() && found->second.incarnation == member.incarnation;
  return same ? &found->second : nullptr;
}

void MemberWatch::answered(const MemberId& from, TimePoint now) {
  if (View* view = view_of(from)) show_life(*view, now);
}

void MemberWatch::sends(const MemberId& from, std::uint64_t bytes, TimePoint now) {
  constexpr std::uint64_t more_than_beats = 1024;
  View* view = view_of(from);
  if (view == nullptr) return;
  show_life(*view, now);
  if (bytes > more_than_beats) view->since = now;
}

void MemberWatch::look(TimePoint now) {
  const Duration gap = now - std::exchange(looked_, now);
  const auto forgive = [&](TimePoint& time, Duration counts) {
    if (gap > counts) time = std::min(time + (gap - counts), now);
  };
  for (auto& [name, view] : views_) {
    forgive(view.heard, options_.silent_after / 2);
    forgive(view.since, options_.hung_min / 4);
    if (view.waits_since) forgive(*view.waits_since, options_.hung_min / 4);
  }
}

// A server joins no epoch by itself, and takes the place of its former process at once.
bool MemberWatch::is_taken(const MemberId& worker, TimePoint now) const {
  const auto found = views_.find(worker.name);
  if (found == views_.end() || found->second.incarnation == worker.incarnation) return false;
  const Beat& beat = found->second.beat;
  return (beat.joins || beat.at_end) && alive({worker.name, found->second.incarnation}, now);
}

std::optional<std::uint64_t> MemberWatch::known_above(const MemberId& caller, bool is_server,
                                                      TimePoint now) const {
  std::uint64_t highest = 0;
  if (const auto known = known_.find(caller.name); known != known_.end()) highest = known->second;
  if (const auto found = views_.find(caller.name); found != views_.end()) {
    const View& view = found->second;
    const MemberId former{caller.name, view.incarnation};
    // One that has said nothing to this server yet may take part.
    const bool may_have_it = is_server || !view.has_beaten || is_taken(caller, now);
    if (former == caller || (may_have_it && alive(former, now))) return std::nullopt;
    highest = std::max(highest, former.incarnation);
  }
  return highest > caller.incarnation ? std::optional(highest) : std::nullopt;
}

void MemberWatch::know(const MemberId& process) {
  std::uint64_t& highest = known_[process.name];
  highest = std::max(highest, process.incarnation);
}

bool MemberWatch::has_left(const MemberId& worker) const {
  const auto found = views_.find(worker.name);
  return found != views_.end() && found->second.incarnation == worker.incarnation &&
         !found->second.beat.joins;
}

void MemberWatch::lost(const MemberId& member, TimePoint now) {
  if (View* view = view_of(member)) view->lost = now;
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
  for (const MemberId& worker : epoch.at_end) add(worker);
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
  return view.incarnation == member.incarnation && !view.lost &&
         now - view.heard < options_.silent_after;
}

std::vector<MemberId> MemberWatch::hears(TimePoint now) const {
  std::vector<MemberId> members;
  for (const auto& [name, view] : views_) {
    const MemberId member{name, view.incarnation};
    if (member != self_ && alive(member, now)) members.push_back(member);
  }
  return members;
}

const Beat& MemberWatch::beat_of(const ServerEntry& server, const Beat& own) const {
  static const Beat& none = *new Beat;  // never destroyed
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

std::uint64_t MemberWatch::updates_everywhere(const Epoch& current, const Beat& own) const {
  std::uint64_t updates = 0;
  for (const ServerEntry& server : current.servers) updates += beat_of(server, own).updates;
  return updates;
}

bool MemberWatch::knows_updates(const Epoch& current, const Beat& own) const {
  return std::ranges::all_of(current.servers, [&](const ServerEntry& server) {
    return server.state != ServerState::up || beat_of(server, own).epoch == current.number;
  });
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

bool MemberWatch::has_heard_servers(const Epoch& epoch) const {
  return std::ranges::all_of(epoch.servers, [&](const ServerEntry& server) {
    return server.id.name == self_.name || views_.contains(server.id.name);
  });
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
