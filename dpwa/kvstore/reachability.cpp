// The members that each server hears. What follows from it for the next epoch is in next_epoch.cpp.

#include <algorithm>
#include <utility>

#include "dpwa/kvstore/link_limits.h"
#include "dpwa/kvstore/member_watch.h"

namespace dpwa::kvstore {

bool MemberWatch::hears(const MemberId& server, const MemberId& member, TimePoint now) const {
  if (server == member) return true;
  if (server == self_) return alive(member, now);
  const auto found = views_.find(server.name);
  if (found == views_.end() || found->second.incarnation != server.incarnation) return true;
  return !found->second.has_beaten || std::ranges::count(found->second.beat.hears, member) > 0;
}

// The servers in this state of which this one hears.
std::vector<MemberId> MemberWatch::live_servers(const Epoch& epoch, TimePoint now,
                                                ServerState state) const {
  std::vector<MemberId> servers;
  for (const ServerEntry& server : epoch.servers) {
    if (server.state == state && alive(server.id, now)) servers.push_back(server.id);
  }
  return servers;
}

// All processes of workers of which one of these servers hears.
std::set<MemberId> MemberWatch::live_workers(const Epoch& epoch, TimePoint now) const {
  std::set<MemberId> workers;
  const auto add = [&](const std::vector<MemberId>& members) {
    for (const MemberId& member : members) {
      if (!epoch.server(member.name)) workers.insert(member);
    }
  };
  for (const MemberId& server : live_servers(epoch, now)) {
    if (server == self_) {
      add(hears(now));
    } else {
      add(views_.at(server.name).beat.hears);
    }
  }
  return workers;
}

void MemberWatch::compare_hearing(const Epoch& current, TimePoint now) {
  const std::vector<MemberId> up = live_servers(current, now);
  std::vector<MemberId> servers = live_servers(current, now, ServerState::filling);
  servers.insert(servers.end(), up.begin(), up.end());
  std::set<MemberId> members = live_workers(current, now);
  for (const ServerEntry& server : current.servers) {
    if (server.state != ServerState::down) members.insert(server.id);
  }
  std::map<std::pair<MemberId, MemberId>, TimePoint> deaf;
  for (const MemberId& member : members) {
    const auto hear = [&](const MemberId& server) { return hears(server, member, now); };
    if (!std::ranges::any_of(up, hear)) continue;
    for (const MemberId& server : servers) {
      if (hear(server)) continue;
      const auto known = deaf_since_.find({server, member});
      deaf[{server, member}] = known == deaf_since_.end() ? now : known->second;
    }
  }
  deaf_since_ = std::move(deaf);
}

bool MemberWatch::is_deaf(const MemberId& server, const MemberId& member, TimePoint now,
                          Duration age) const {
  const auto since = deaf_since_.find({server, member});
  return since != deaf_since_.end() && now - since->second >= age;
}

// As long as another server hears it, this one may be deaf.
bool MemberWatch::is_gone(const Epoch& epoch, const MemberId& server, TimePoint now) const {
  return !alive(server, now) &&
         std::ranges::none_of(live_servers(epoch, now), [&](const MemberId& other) {
           return other != self_ && views_.at(other.name).has_beaten && hears(other, server, now);
         });
}

std::vector<std::pair<std::string, std::string>> MemberWatch::deaf(TimePoint now) const {
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& [pair, since] : deaf_since_) {
    if (is_deaf(pair.first, pair.second, now, deaf_after()))
      names.emplace_back(pair.first.name, pair.second.name);
  }
  return names;
}

// To half of them or more.
bool MemberWatch::deaf_to_workers(const Epoch& epoch, const MemberId& server, TimePoint now) const {
  const std::set<MemberId> workers = live_workers(epoch, now);
  const auto deaf = std::ranges::count_if(
      workers, [&](const MemberId& worker) { return is_deaf(server, worker, now, deaf_after()); });
  return deaf > 0 && 2 * static_cast<std::size_t>(deaf) >= workers.size();
}

bool MemberWatch::heard_by_servers(const Epoch& epoch, const MemberId& member,
                                   TimePoint now) const {
  return std::ranges::all_of(live_servers(epoch, now),
                             [&](const MemberId& server) { return hears(server, member, now); });
}

// Whether a server that comes back and the servers that are up hear one another, and it hears all
// workers or, once each has had the time to connect again, more than half of them. One that it does
// not hear is then left out.
bool MemberWatch::may_be_filled(const Epoch& epoch, const MemberId& server, TimePoint now) const {
  if (!heard_by_servers(epoch, server, now)) return false;
  const auto heard = [&](const MemberId& member) { return hears(server, member, now); };
  if (!std::ranges::all_of(live_servers(epoch, now), heard)) return false;
  const std::set<MemberId> workers = live_workers(epoch, now);
  const auto count = static_cast<std::size_t>(std::ranges::count_if(workers, heard));
  const TimePoint since = views_.at(server.name).first;
  const bool all_could = now - since >= options_.silent_after + 2 * longest_pause;
  return count == workers.size() || (all_could && 2 * count > workers.size());
}

}  // namespace dpwa::kvstore
