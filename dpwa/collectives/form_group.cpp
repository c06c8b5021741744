#include "dpwa/collectives/form_group.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "dpwa/base/processors.h"
#include "dpwa/collectives/hosts_group.h"
#include "dpwa/collectives/local_meeting.h"
#include "dpwa/collectives/remote_group.h"
#include "dpwa/collectives/shared_group.h"
#include "dpwa/collectives/tcp_links.h"

namespace dpwa::collectives {
namespace {

using Invitations = std::vector<std::string>;
using OnBroken = std::function<void(int)>;

// Of a member that does not share memory.
constexpr std::string_view alone = "-";

// The ranks that can share memory with one another, and the first of them in ascending order.
std::vector<std::vector<int>> hosts_of(const Invitations& invitations) {
  std::vector<std::vector<int>> hosts;
  std::map<std::string, std::size_t> places;
  for (std::size_t rank = 0; rank < invitations.size(); ++rank) {
    const std::string& invitation = invitations[rank];
    std::size_t place = hosts.size();
    if (invitation != alone)
      place = places.try_emplace(LocalMeeting::ground_of(invitation), place).first->second;
    if (place == hosts.size()) hosts.emplace_back();
    hosts[place].push_back(static_cast<int>(rank));
  }
  return hosts;
}

const std::vector<int>& host_of(const std::vector<std::vector<int>>& hosts, int rank) {
  return *std::ranges::find_if(hosts, [rank](const std::vector<int>& ranks) {
    return std::ranges::find(ranks, rank) != ranks.end();
  });
}

struct Local {
  std::unique_ptr<SharedGroup> group;
  std::shared_ptr<LentMemory> memory;
};

// The group of those ranks, one of which is the own one.
Local share_memory(LocalMeeting& meeting, const std::vector<int>& ranks,
                   const Invitations& invitations, const GroupTerms& terms, TimePoint until,
                   OnBroken on_broken) {
  auto own = LentMemory::create();
  if (!own) throw std::runtime_error("the system refuses memory that processes share");
  LocalMeeting::Terms local;
  local.rank = static_cast<int>(std::ranges::find(ranks, terms.rank) - ranks.begin());
  local.group = terms.group;
  local.until = until;
  local.stop = terms.stop;
  local.processors = processor_count();
  Invitations theirs;
  for (const int rank : ranks) theirs.push_back(invitations[static_cast<std::size_t>(rank)]);
  std::vector<std::optional<BorrowedMemory>> memory;
  std::vector<std::optional<LinkSocket>> sockets;
  std::size_t processors = local.processors;  // the fewest: all wait in the same way
  for (auto& member : meeting.meet(theirs, *own, local)) {
    sockets.emplace_back();
    if (member) sockets.back().emplace(std::move(member->socket));
    if (member) processors = std::min(processors, member->processors);
    memory.push_back(member ? std::optional(std::move(member->memory)) : std::nullopt);
  }
  auto group = std::make_unique<SharedGroup>(local.rank, own, std::move(memory), processors);
  group->watch(std::move(sockets), std::move(on_broken));
  return {std::move(group), std::move(own)};
}

}  // namespace

std::string setting_words(const Sharing& sharing, bool secured) {
  const auto counted = [](std::size_t hosts) {
    return hosts == 1 ? "one host" : std::to_string(hosts) + " hosts";
  };
  const std::string between = secured ? "TLS" : "TCP";
  if (sharing.hosts == 0) return between;
  std::string words = (sharing.hosts == 1 ? "memory of " : "memory on ") + counted(sharing.hosts);
  if (sharing.hosts > 1) words += ", " + between + " between them";
  if (sharing.alone > 0)
    words += ", " + between + " to " + std::to_string(sharing.alone) +
             (sharing.alone == 1 ? " rank" : " ranks");
  return words;
}

FormedGroup form_group(const GroupTerms& terms) {
  const TimePoint until = std::chrono::steady_clock::now() + terms.limit;
  std::optional<LocalMeeting> meeting;
  if (terms.same_host) meeting.emplace();
  LinkListener listener(terms.own_address);
  Invitations local, remote;
  const std::string own = meeting ? meeting->invitation() : std::string(alone);
  for (const std::string& said : terms.exchange(own + " " + listener.text())) {
    const auto space = said.find(' ');
    if (space == std::string::npos) throw std::runtime_error("a member says something unknown");
    local.push_back(said.substr(0, space));
    remote.push_back(said.substr(space + 1));
  }
  const OnBroken on_broken = [then = terms.on_broken](int) {
    if (then) then();
  };
  const auto hosts = hosts_of(local);
  FormedGroup formed;
  Sharing sharing;
  for (const auto& ranks : hosts)
    ++(ranks.size() > 1 || hosts.size() == 1 ? sharing.hosts : sharing.alone);
  formed.setting = setting_words(sharing, terms.security != nullptr);
  const std::vector<int>& here = host_of(hosts, terms.rank);
  const auto allocate = [](const std::shared_ptr<LentMemory>& memory) {
    return [memory](std::size_t bytes) { return memory->allocate(bytes); };
  };
  if (hosts.size() == 1 && meeting) {
    Local all = share_memory(*meeting, here, local, terms, until, on_broken);
    formed.allocate = allocate(all.memory);
    formed.group = std::move(all.group);
    return formed;
  }
  LinkOptions options;
  options.group = terms.group;
  options.security = terms.security;
  options.names = terms.names;
  const auto broken = std::make_shared<HostsBreak>();
  auto links = connect_links(std::move(listener), options, terms.rank, remote, terms.limit,
                             terms.stop, [broken, on_broken](int lost) {
                               broken->break_all(lost);
                               on_broken(lost);
                             });
  if (hosts.size() == local.size()) {
    formed.group = std::make_unique<RemoteGroup>(std::move(links));
    return formed;
  }
  // A member that is alone on its host has memory of its own.
  if (!meeting) meeting.emplace();
  Local part =
      share_memory(*meeting, here, local, terms, until, [broken, here, on_broken](int lost) {
        const int rank = lost < 0 ? -1 : here[static_cast<std::size_t>(lost)];
        broken->break_all(rank);
        on_broken(rank);
      });
  formed.allocate = allocate(part.memory);
  formed.group =
      std::make_unique<HostsGroup>(hosts, std::move(links), std::move(part.group), broken);
  return formed;
}

}  // namespace dpwa::collectives
