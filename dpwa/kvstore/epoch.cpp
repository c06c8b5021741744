#include "dpwa/kvstore/epoch.h"

#include <algorithm>

#include "dpwa/base/invariant.h"

namespace dpwa::kvstore {

const WorkerEntry* Epoch::worker(const std::string& name) const {
  const auto found =
      std::ranges::find(workers, name, [](const WorkerEntry& entry) { return entry.id.name; });
  return found == workers.end() ? nullptr : &*found;
}

std::optional<std::size_t> Epoch::server(const std::string& name) const {
  const auto found =
      std::ranges::find(servers, name, [](const ServerEntry& entry) { return entry.id.name; });
  if (found == servers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - servers.begin());
}

bool Epoch::is_at_end(const MemberId& member) const {
  return std::ranges::find(at_end, member) != at_end.end();
}

bool Epoch::has(const MemberId& member) const {
  if (is_at_end(member)) return true;
  if (const WorkerEntry* entry = worker(member.name)) return entry->id == member;
  const auto at = server(member.name);
  return at && servers[*at].id == member && servers[*at].state != ServerState::down;
}

bool Epoch::has_successor(const MemberId& member) const {
  const auto former = std::ranges::find(at_end, member.name, &MemberId::name);
  if (former != at_end.end()) return former->incarnation < member.incarnation;
  if (const WorkerEntry* entry = worker(member.name)) {
    return entry->id.incarnation < member.incarnation;
  }
  const auto at = server(member.name);
  return at && servers[*at].state != ServerState::down &&
         servers[*at].id.incarnation < member.incarnation;
}

std::size_t Epoch::servers_taking_part() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      servers, [](const ServerEntry& entry) { return entry.state != ServerState::down; }));
}

Holders holders_of(const Epoch& epoch, std::size_t home, bool replicas) {
  DPWA_INVARIANT(home < epoch.servers.size(), "a slice is at home at one of the servers", home,
                 epoch.servers.size());
  const auto state = [&](std::size_t at) { return epoch.servers[at].state; };
  const std::size_t next = (home + 1) % epoch.servers.size();
  const bool pair = replicas && next != home;
  Holders holders;
  if (state(home) == ServerState::up) {
    holders.primary = home;
    if (pair && state(next) != ServerState::down) holders.backup = next;
  } else if (pair && state(next) == ServerState::up) {
    holders.primary = next;
    if (state(home) != ServerState::down) holders.backup = home;
  }
  DPWA_INVARIANT(!holders.backup || (holders.primary && *holders.primary != *holders.backup),
                 "primary and backup of a slice differ", home, epoch.number);
  return holders;
}

bool is_majority(const Epoch& epoch, const std::vector<MemberId>& voters) {
  if (epoch.number == 0) return voters.size() == epoch.servers.size();
  const auto count = [&](auto is) {
    return static_cast<std::size_t>(std::ranges::count_if(voters, is));
  };
  const std::size_t votes = count([&](const MemberId& voter) { return epoch.has(voter); });
  const std::size_t votes_of_servers = count([&](const MemberId& voter) {
    return epoch.has(voter) && epoch.server(voter.name).has_value();
  });
  const std::size_t successors =
      count([&](const MemberId& voter) { return epoch.has_successor(voter); });
  const std::size_t members = epoch.members();
  if (votes_of_servers == 0) return false;
  if (2 * votes > members || votes + successors == members) return true;
  if (votes_of_servers == epoch.servers_taking_part()) return true;
  if (2 * votes != members) return false;
  const auto first = std::ranges::find_if(
      epoch.servers, [](const ServerEntry& entry) { return entry.state != ServerState::down; });
  return first != epoch.servers.end() && std::ranges::count(voters, first->id) > 0;
}

}  // namespace dpwa::kvstore
